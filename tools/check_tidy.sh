#!/usr/bin/env bash
# usage: tools/check_tidy.sh BUILD_DIR: fails when clang-tidy finds fault with a source file of the engine. A
# file that passed is not looked at again until it, a header or the settings change.
set -euo pipefail
build=$(cd "${1:?usage: check_tidy.sh BUILD_DIR}" && pwd)
cd "$(dirname "$0")/.."

stamps=$build/tidy-stamps
mkdir -p "$stamps"
headers=$(git ls-files -z '*.h' .clang-tidy | xargs -0 cat | sha256sum)
export build stamps headers

check() {
  local file=$1 stamp
  stamp=$stamps/$(cat <(echo "$headers") "$file" | sha256sum | cut -c1-32)
  [ -e "$stamp" ] && return
  clang-tidy-19 -p "$build" --quiet "$file" && touch "$stamp"
}
export -f check
# The shim needs omp.h, which clang has none of; cuda_absent.cpp is no part of a build with CUDA.
# shellcheck disable=SC2016  # the inner shell expands $1
git ls-files -z core kernels nn comm data trainers bench | grep -z '\.cpp$' |
  grep -zvE "onednn_shim.cpp|cuda_absent.cpp|bench/kernels/" |
  xargs -0 -n 1 -P "$(nproc)" bash -c 'check "$1"' check
