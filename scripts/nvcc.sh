#!/usr/bin/env bash
# usage: scripts/nvcc.sh [--major]: prints the path of the nvcc that CMake would find, or the "13" of its CUDA 13.0;
# prints nothing if there is none.
set -euo pipefail

find_nvcc() {
  local usual=/usr/local/cuda/bin/nvcc
  if [ -x "${CUDA_HOME:-}/bin/nvcc" ]; then
    echo "$CUDA_HOME/bin/nvcc"
  elif command -v nvcc; then
    return
  elif [ -x $usual ]; then
    echo $usual
  else
    python3 "$(dirname "$0")/../tools/nvidia_packages.py" nvcc
  fi
}

nvcc=$(find_nvcc)
if [ -n "$nvcc" ] && [ "${1:-}" = --major ]; then
  "$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p'
elif [ -n "$nvcc" ]; then
  echo "$nvcc"
fi
