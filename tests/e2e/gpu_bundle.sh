#!/usr/bin/env bash
# usage: gpu_bundle.sh BIN
# Checks that the bundle that bench/gpu_suite.sh packs from BIN is small enough and contains all that its programs need.
# Exits with 77 in a build without CUDA.
set -euo pipefail
[ -x "$1/test_cuda" ] || { echo "skipped: no test_cuda in $1"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$(dirname "$0")/../../bench/gpu_suite.sh" --programs "$1" --bundle "$work/bundle.tar.gz"
mkdir "$work/there"
tar -C "$work/there" -xzf "$work/bundle.tar.gz"
export LD_LIBRARY_PATH=$work/there/lib
for program in test_cuda bench_kernels bench_train train_convnet train_resnet lockstep; do
  ldd "$work/there/$program" >"$work/libraries"
  elsewhere=$(awk '$2 == "=>" {print $3}' "$work/libraries" | grep -v "^$work/" |
    grep -Ev '/lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so' || true)
  [ -z "$elsewhere" ] || { echo "$program takes from this machine: $elsewhere"; exit 1; }
done
"$work/there/lockstep" --version
