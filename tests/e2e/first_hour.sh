#!/usr/bin/env bash
# usage: tests/e2e/first_hour.sh SCENARIO BIN: what scripts print and do in the first hour on a GPU machine (rows D2 and
# D3 of the CUDA audit). CMake, pip, nvcc and the driver's tools are fakes; the programs of BIN are real and run on
# emulated GPUs.
# shellcheck disable=SC2016  # the fakes expand what stands in single quotes
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
scenario=$1 bin=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir -p "$tree/build/release" "$work"/{bin,nvcc}
cp -r "$root/scripts" "$root/tools" "$tree/"
sed -i 's#/usr/local/cuda#/nowhere#' "$tree/scripts/nvcc.sh"  # this machine's own

fake() {  # PATH TEXT: a program that runs TEXT
  printf '#!/bin/sh\n%s\n' "$2" >"$work/$1"
  chmod +x "$work/$1"
}
fake bin/cmake 'echo "cmake $*" >>"$CALLS"
case "$*" in *--preset*CUDA=OFF*) echo "-- CUDA: OFF" ;; *--preset*)
  echo "-- CUDA: ON"
  touch build/release/build.ninja
  printf "LOCKSTEP_CUDA:STRING=AUTO\nCMAKE_CUDA_COMPILER:FILEPATH=nvcc\n" >build/release/CMakeCache.txt
  for part in $LACKS; do
    echo "-- Left out: $part, so $part is missed"
    echo "${part}_LIBRARY:FILEPATH=${part}_LIBRARY-NOTFOUND" >>build/release/CMakeCache.txt
  done ;;
esac'
fake bin/ldconfig ''
fake bin/nvidia-smi '[ -n "${SMI:-}" ] || exit 9
case "$*" in
  -L) echo "GPU 0: NVIDIA H200 (UUID: GPU-0)" ;;
  *compute_cap*) echo 9.0 ;;
  *) echo "| NVIDIA-SMI 580.1  Driver Version: 580.1  CUDA Version: $SMI  |" ;;
esac'
fake nvcc/nvcc 'echo "Cuda compilation tools, release ${NVCC:-13.0}, V13.0.88"'
fake bin/python3 'case "$*" in "-m pip --version") ;; *"-m pip"*) echo "pip $*" >>"$CALLS" ;;
  *) exec /usr/bin/python3 "$@" ;; esac'

in_tree() {  # CODE COMMAND...: runs with the fakes; its output is in said, its calls are in calls
  local code=$1 got=0
  shift
  : >"$work/calls"
  (cd "$tree" && env -u LOCKSTEP_CUDA -u CUDAARCHS -u NP -u VIRTUAL_ENV CUDA_HOME=/nowhere CALLS="$work/calls" \
    PATH="$work/bin:/usr/bin:/bin" LACKS= "$@") >"$work/said" 2>&1 || got=$?
  [ $got = "$code" ] || fail "exit code $got, expected $code: $*"
}
fail() {
  cat "$work/said" "$work/calls"
  echo "$1"
  exit 1
}
expect() {  # FILE TEXT
  grep -qF -- "$2" "$work/$1" || fail "expected in $1: $2"
}
refuse() {
  ! grep -qF -- "$2" "$work/$1" || fail "not expected in $1: $2"
}
with_nvcc=(PATH="$work/bin:$work/nvcc:/usr/bin:/bin" SMI=13.0)

case $scenario in
  nvcc)  # nvidia-smi works, but there is no compiler
    in_tree 0 env SMI=13.0 scripts/build_training.sh
    expect said "a GPU driver is here but no nvcc: the programs are built for the CPU alone"
    expect said "  try: scripts/setup.sh cuda (or the CUDA toolkit 12.4 or newer), then this again"
    expect calls "-DLOCKSTEP_CUDA=OFF"
    mkdir -p "$work/home/bin"
    cp "$work/nvcc/nvcc" "$work/home/bin"
    in_tree 0 env "${with_nvcc[@]}" CUDA_HOME="$work/home" scripts/nvcc.sh  # CMake looks there first
    expect said "$work/home/bin/nvcc"
    in_tree 0 env "${with_nvcc[@]}" scripts/nvcc.sh
    expect said "$work/nvcc/nvcc"
    ;;
  libraries)  # missing libraries are named and looked for again until they are found
    in_tree 0 env "${with_nvcc[@]}" LACKS="CUDNN NCCL" scripts/build_training.sh
    expect said "build: CUDA is built without cuDNN NCCL"
    expect said "  why: CUDNN is missed; NCCL is missed"
    expect said "  try: scripts/setup.sh cuda (or pip install nvidia-cudnn-cu13 nvidia-nccl-cu13), then this again"
    in_tree 0 env "${with_nvcc[@]}" LACKS="NCCL" NVCC=12.6 scripts/build_training.sh
    expect said "build: CUDA is built without NCCL"
    expect said "pip install nvidia-nccl-cu12)"
    in_tree 0 env "${with_nvcc[@]}" scripts/build_training.sh
    expect calls "--preset release -DLOCKSTEP_CUDA=AUTO"
    refuse said "is built without"
    in_tree 0 env "${with_nvcc[@]}" scripts/build_training.sh
    refuse calls "-DLOCKSTEP_CUDA="
    ;;
  setup)  # a compiler only if there is none, and not CUDA 13 for a driver of CUDA 12
    in_tree 0 env SMI=13.0 scripts/setup.sh cuda
    expect calls "--target build/cuda nvidia-cuda-nvcc==13"
    expect calls "nvidia-cudnn-cu13=="
    expect calls "nvidia-nccl-cu13=="
    in_tree 0 env "${with_nvcc[@]}" NVCC=12.6 scripts/setup.sh cuda
    refuse calls nvidia-cuda-nvcc
    expect calls "--target build/cuda nvidia-cudnn-cu12=="
    in_tree 5 env SMI=12.4 scripts/setup.sh cuda
    expect said "Python's packages have no compiler for this driver"
    expect said "  try: a newer driver, or CUDA 12.4 or newer from "
    refuse calls pip
    mkdir -p "$tree/build/cuda/nvidia/cu13/bin"
    touch "$tree/build/cuda/nvidia/cu13/bin/nvcc"
    in_tree 0 scripts/nvcc.sh
    expect said "build/cuda/nvidia/cu13/bin/nvcc"
    ;;
  ranks)  # NP is the number of GPUs
    fake tree/scripts/setup.sh ''
    fake tree/scripts/build_training.sh ''
    fake tree/scripts/run 'echo "run $*"'
    mkdir -p "$tree/build/release/bin"
    ln -s "$bin/lockstep_emulated" "$tree/build/release/bin/lockstep"
    for case in "8 8" "1 1" "0 2"; do
      read -r gpus ranks <<<"$case"
      in_tree 0 env LOCKSTEP_EMULATION_DEVICES="$gpus" scripts/train.sh --epochs 1
      expect said "run -np $ranks train_convnet --epochs 1"
    done
    in_tree 0 env LOCKSTEP_EMULATION_DEVICES=8 NP=3 scripts/train.sh
    expect said "run -np 3 train_convnet"
    ;;
  *) echo "no scenario $scenario"; exit 2 ;;
esac
echo "$scenario: as it should be"
