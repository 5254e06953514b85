#!/usr/bin/env bash
# usage: minimal_build.sh BUILD BIN
# Builds in BUILD as on a machine without MPI, oneDNN, libjpeg, libpng, Eigen and headers of cuDNN, cuBLASLt and NCCL.
# Programs must refuse what needs them, and training on emulated CUDA must give the same bits as the full build in BIN.
# Exits with 77 without ccache, which has most objects from that build.
set -euo pipefail
build=$1 whole=$2
command -v ccache >/dev/null || { echo "skipped: without ccache all is compiled once more"; exit 77; }
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() {  # CODE TEXT COMMAND...
  local code=$1 text=$2 got=0
  shift 2
  "$@" >"$work/said" 2>&1 || got=$?
  [ "$got" = "$code" ] && grep -qF -- "$text" "$work/said" && return
  tail -n 40 "$work/said"
  echo "exit code $got, expected $code and '$text': $*"
  exit 1
}

packages=(MPI OpenMP dnnl JPEG PNG Eigen3)
packages=("${packages[@]/#/-DCMAKE_DISABLE_FIND_PACKAGE_}")
configure=(cmake --preset release -B "$build" -DLOCKSTEP_BENCH=OFF "${packages[@]/%/=ON}"
  -D{CUDNN,CUBLASLT,NCCL}_INCLUDE_DIR=)
expect 1 "LOCKSTEP_NCCL=ON, but nccl.h or libnccl.so.2 was not found" "${configure[@]}" -DLOCKSTEP_NCCL=ON
expect 1 "LOCKSTEP_ONEDNN=ON, but its libraries were not" "${configure[@]}" -DLOCKSTEP_{NCCL=AUTO,ONEDNN=ON}
expect 0 "Left out: ONEDNN" "${configure[@]}" -DLOCKSTEP_MPI=OFF -DLOCKSTEP_ONEDNN=AUTO
for part in CUDNN CUBLASLT NCCL; do
  grep -qF "Left out: $part, so" "$work/said"
done
expect 0 "" cmake --build "$build" --target train_convnet lockstep train_convnet_emulated train_resnet_emulated
bin=$build/bin
for program in train_convnet lockstep train_convnet_emulated; do
  ldd "$bin/$program" >"$work/said"
  ! grep -E 'lib(mpi|open-rte|open-pal|dnnl|gomp|jpeg|png)' "$work/said" || exit 1
done

mkdir -p "$work"/photos/{train,val}/{ants,bees}
touch "$work"/photos/{train,val}/{ants,bees}/1.jpg
expect 5 "this build reads no photos" "$bin/train_convnet" "$work/photos"
expect 5 "this build does not train on the CPU" "$bin/train_convnet" -o "$work/cpu"
[ ! -e "$work/cpu" ]
expect 5 "this build cannot compute the filters of a whitening layer" \
  "$bin/train_resnet_emulated" --device cuda -a airbench94 -b 8 -o "$work/airbench"
[ ! -e "$work/airbench" ]
expect 5 "this build has no MPI" \
  env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$bin/train_convnet" --device cuda
expect 0 "images/s" "$bin/lockstep" plan -a resnet50 -b 64 --gpu h200
expect 5 "this build has no cuDNN" "$bin/lockstep" describe-gpu

python3 - "$work" <<'END'
import random, struct, sys
from pathlib import Path

for split, images in ("train", 32), ("t10k", 8):
    pixels, labels = random.randbytes(images * 28 * 28), bytes(i % 10 for i in range(images))
    Path(sys.argv[1], f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, images, 28, 28) + pixels)
    Path(sys.argv[1], f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, images) + labels)
END
args=("$work" --dataset mnist --device cuda -b 8 --epochs 1)
train() {  # BIN RUN
  expect 0 "Accuracy is" "$1/train_convnet_emulated" "${args[@]}" -o "$work/$2"
}
for option in {transport,algorithm}=nccl; do
  expect 5 "  try: install libnccl-dev" "$bin/train_convnet_emulated" "${args[@]}" "--$option" -o "$work/nccl"
  grep -qF "error: this build has no NCCL" "$work/said"
done
expect 2 "--autotune has no engines to choose from" "$bin/train_convnet_emulated" "${args[@]}" --autotune
LOCKSTEP_EMULATION_CUBLASLT=on train "$bin" minimal  # the build must not look for it
train "$whole" whole
grep -q '"onednn": "none"' "$work/minimal/run.json"
expect 0 "same bits in all" "$bin/lockstep" diff "$work"/{minimal,whole}/checkpoints/last.safetensors
