#!/usr/bin/env bash
# usage: [NP=2] [DATA=DIR] scripts/train.sh [ARGS...]
# From a bare machine to a trained network: installs what is missing, builds, and trains the ConvNet on
# the built-in digits (or on the data set in DATA) with NP ranks. ARGS go to train_convnet.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh train
mkdir -p build
cmake --preset release >build/configure.log 2>&1 || {
  cat build/configure.log >&2
  exit 5
}
cmake --build --preset release --target train_convnet train_resnet lockstep
data=()
[ -z "${DATA:-}" ] || data=(--data "$DATA")
scripts/run -np "${NP:-2}" train_convnet "${data[@]}" "$@"
