#!/usr/bin/env bash
# usage: scripts/nvcc.sh [--major]: prints the path of the nvcc that CMake would find, or the "13" of its CUDA 13.0;
# prints nothing if there is none.
set -euo pipefail

find_nvcc() {
  local toolkit=${CUDA_HOME:-/usr/local/cuda}
  if command -v nvcc; then
    return
  elif [ -x "$toolkit/bin/nvcc" ]; then
    echo "$toolkit/bin/nvcc"
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
