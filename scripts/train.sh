#!/usr/bin/env bash
# usage: [NP=2] [DATA=DIR] scripts/train.sh [ARGS...]
# From a bare machine to a trained network: installs what is missing, builds, and trains the ConvNet on
# the built-in digits (or on the data set in DATA) with NP ranks. ARGS go to train_convnet.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh train
cmake --preset release -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF >build-configure.log 2>&1 || {
  cat build-configure.log >&2
  exit 5
}
rm -f build-configure.log
cmake --build --preset release --target train_convnet lockstep
data=()
[ -z "${DATA:-}" ] || data=(--data "$DATA")
scripts/run -np "${NP:-2}" train_convnet "${data[@]}" "$@"
