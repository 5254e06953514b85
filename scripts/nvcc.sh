#!/usr/bin/env bash
# usage: scripts/nvcc.sh: prints the path of the nvcc that CMake would find; nothing where there is none.
set -euo pipefail
command -v nvcc && exit
toolkit=${CUDA_HOME:-/usr/local/cuda}
if [ -x "$toolkit/bin/nvcc" ]; then
  echo "$toolkit/bin/nvcc"
else
  python3 "$(dirname "$0")/../tools/nvidia_packages.py" nvcc
fi
