#!/usr/bin/env bash
# usage: tests/e2e/build_training.sh: which options scripts/build_training.sh passes to CMake on different machines, and
# which messages it prints. CMake, the driver's tools and nvcc are fakes, so nothing is built.
# shellcheck disable=SC2016  # the fakes expand what stands in single quotes
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{tree,bin,nvcc}
ln -s "$root/scripts" "$root/tools" "$work/tree/"
# build_training.sh changes to the parent of its own folder, which is a link, so the script is copied.
rm "$work/tree/scripts"
mkdir "$work/tree/scripts"
cp "$root"/scripts/{build_training,nvcc}.sh "$work/tree/scripts/"
sed -i 's#/usr/local/cuda#/nowhere#' "$work/tree/scripts/nvcc.sh"  # this machine's own

fake() {  # NAME TEXT: a program that says TEXT
  printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
fake cmake 'echo "cmake $*" >>"$CALLS"
case "$*" in *--preset*CUDA=ON*|*--preset*CUDA=AUTO*) cuda=ON ;; *) cuda=OFF ;; esac
echo "-- CPU kernels: x86-64-v3"; echo "-- CUDA: $cuda"'
fake df 'echo "Filesystem 1048576-blocks Used Available"; echo "disk 9999 1 ${FREE_MB:-9999}"'
fake ldconfig '[ -z "${DRIVER:-}" ] || echo "libcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1"'
fake nvidia-smi '[ -z "${CAPABILITY:-}" ] || echo "$CAPABILITY"'
printf '#!/bin/sh\n' >"$work/nvcc/nvcc"
chmod +x "$work/nvcc/nvcc"

expect() {  # CODE SAID ASKED VARIABLE=VALUE...: runs in a fresh tree; ASKED is - for no call
  local code=$1 said=$2 asked=$3 got=0
  shift 3
  rm -rf "$work/tree/build" "$work/calls"
  touch "$work/calls"
  (cd "$work/tree" && env -u LOCKSTEP_CUDA -u CUDAARCHS CUDA_HOME=/nowhere CALLS="$work/calls" \
    PATH="$work/bin:/usr/bin:/bin" "$@" scripts/build_training.sh) >"$work/said" 2>&1 || got=$?
  [ "$asked" != - ] || [ ! -s "$work/calls" ] || { echo "expected no call: $*"; cat "$work/calls"; exit 1; }
  [ -s "$work/calls" ] || echo - >"$work/calls"
  if [ $got != "$code" ] || ! grep -qF -- "$said" "$work/said" || ! grep -qF -- "$asked" "$work/calls"; then
    cat "$work/said" "$work/calls"
    echo "exit code $got; expected $code, '$said' and a call with '$asked': $*"
    exit 1
  fi
}

if [ ! -e /dev/nvidiactl ]; then  # else this machine has a driver
  expect 0 "without CUDA: no GPU driver here" "-DLOCKSTEP_CUDA=OFF -DLOCKSTEP_ISA_LEVELS=native" A=
fi
expect 0 "without CUDA: no nvcc here" "-DLOCKSTEP_CUDA=OFF" DRIVER=1
grep -q '^  try: scripts/setup.sh cuda (or the CUDA toolkit 12.4 or newer), then this again' "$work/said"
with_nvcc=(DRIVER=1 "PATH=$work/bin:$work/nvcc:/usr/bin:/bin")
expect 0 "with CUDA" "-DCMAKE_CUDA_ARCHITECTURES=90 -DLOCKSTEP_CUDA=AUTO" "${with_nvcc[@]}" CAPABILITY=9.0
expect 0 "the programs are built for the CPU alone" "-DLOCKSTEP_CUDA=OFF" "${with_nvcc[@]}" CAPABILITY=7.5
grep -q '^  why: Lockstep.s kernels need sm_80 or newer' "$work/said"
expect 0 "with CUDA" "-DLOCKSTEP_CUDA=ON -DLOCKSTEP_ISA_LEVELS=all" LOCKSTEP_CUDA=ON LOCKSTEP_ISA_LEVELS=all
expect 5 "build/ has 12 MB of free space" - FREE_MB=12

# An existing build folder keeps its configuration until CUDA is requested.
mkdir -p "$work/tree/build/release"
again() {
  : >"$work/calls"
  (cd "$work/tree" && env CUDA_HOME=/nowhere CALLS="$work/calls" PATH="$work/bin:/usr/bin:/bin" "$@" \
    scripts/build_training.sh) >"$work/said" 2>&1
}
touch "$work/tree/build/release/build.ninja"
printf 'LOCKSTEP_CUDA:STRING=OFF\nLOCKSTEP_ISA_LEVELS:STRING=all\n' >"$work/tree/build/release/CMakeCache.txt"
again LOCKSTEP_CUDA=OFF
[ "$(wc -l <"$work/calls")" = 1 ]
grep -q -- --build "$work/calls"
again LOCKSTEP_CUDA=ON
grep -qF -- "-DLOCKSTEP_CUDA=ON -DLOCKSTEP_ISA_LEVELS=all" "$work/calls"
echo "scripts/build_training.sh asks for what each machine needs"
