#!/usr/bin/env bash
# usage: [NP=N] [DATA=DIR] [LOCKSTEP_CUDA=ON|OFF] scripts/train.sh [ARGS...]
# From a bare machine to a trained network: installs what is missing, builds what this machine needs
# (scripts/build_training.sh), and trains the ConvNet on the built-in digits (or on the data set in DATA) with NP
# ranks: by default one for each GPU, and two where there is none. ARGS go to train_convnet. In a package's folder the
# programs are there already.
set -euo pipefail
from=$PWD  # paths in ARGS and DATA, and runs/, are the caller's
cd "$(dirname "$0")/.."
root=$PWD

. scripts/part.sh
if [ -x bin/train_convnet ]; then
  lockstep=bin/lockstep
  if ! command -v mpirun >/dev/null || ldd bin/train_convnet | grep -q 'not found'; then
    part packages scripts/setup.sh run
  fi
else
  lockstep=build/release/bin/lockstep
  part packages scripts/setup.sh train
  part "train.sh: build" scripts/build_training.sh
fi
if [ -z "${NP:-}" ]; then
  NP=$($lockstep doctor --ranks) || $lockstep doctor >&2  # training cannot start: it says why
fi
data=()
[ -z "${DATA:-}" ] || data=(--data "$DATA")
cd "$from"
part "train.sh: training" "$root/scripts/run" -np "$NP" train_convnet "${data[@]}" "$@"
