#!/usr/bin/env bash
# usage: tests/long/newcomer.sh [FOLDER [RECIPE...]]: applies the patches of docs/contributing, or those of the recipes
# that are named (activation, schedule, collective), to a copy of the tracked files, builds it for the CPU and runs what
# they add: the activation's tests; the schedule's tests and rates; the algorithm's tests, its sums on 1, 2 and 4 ranks
# over shared memory and MPI, and trainings, of which 2 ranks must have the tree's bits, since two terms have one order.
# FOLDER, else a temporary one, takes the copy; one that is there is built further. With LOCKSTEP_NEWCOMER_CUDA=1 the
# activation's kernels run in emulation too.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ $# = 0 ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
else
  mkdir -p "$1"
  work=$(cd "$1" && pwd)
  shift
fi
recipes=("$@")
[ $# -gt 0 ] || recipes=(activation schedule collective)
if [ ! -e "$work/CMakeLists.txt" ]; then
  (cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$work")
  cd "$work"
  git init -q
  for recipe in "${recipes[@]}"; do git apply "$root/docs/contributing/$recipe.patch"; done
fi
cd "$work"
bin=$work/build/release/bin
cmake --preset release -DLOCKSTEP_CUDA=OFF >cmake.log || { cat cmake.log; exit 1; }

build() {  # in folder $1 the targets $2...
  cmake --build "$1" -j "$(nproc)" --target "${@:2}" >build.log || { tail -50 build.log; exit 1; }
}
tests() {  # program and filter; fails where nothing matches
  "$bin/$1" --gtest_brief=1 --gtest_filter="$2" | tee tests.log
  grep -q 'PASSED  *\] [1-9]' tests.log || { echo "$1 $2: no test passed"; exit 1; }
}

activation() {
  build build/release test_kernels
  tests test_kernels '*Silu*'
  [ "${LOCKSTEP_NEWCOMER_CUDA:-}" = 1 ] || return 0
  cmake --preset release -B build/cuda -DLOCKSTEP_CUDA=ON >cmake.log || { cat cmake.log; exit 1; }
  build build/cuda test_cuda_fast
  bin=$work/build/cuda/bin tests test_cuda_fast '*Silu*'
}

schedule() {
  build build/release train_convnet test_trainers
  tests test_trainers 'Schedule.*:OptimizerConfig.*'
  "$bin/train_convnet" --lr 0.1 --lr-scheduler exponential --lr-gamma 0.5 --epochs 3 --lr-dry-run | tee rates.log
  grep -q 'epoch 2 .* lr 0.025$' rates.log || { echo "no rate of 0.025 in the third epoch"; exit 1; }
}

train() {  # on $1 ranks, algorithm $2
  scripts/run -np "$1" train_convnet --global-batch-size 64 --shards 4 --bn-groups 4 --max-steps 20 --threads 1 \
    --algorithm "$2" -o "run-$2-$1" >"run-$2-$1.log" 2>&1 || { cat "run-$2-$1.log"; exit 1; }
}
collective() {
  build build/release test_comm bench_allreduce train_convnet lockstep
  tests test_comm '*Shared*:*Message*:*RankErrors*'
  local ranks transport
  for ranks in 1 2 4; do
    for transport in shm mpi; do
      scripts/run -np "$ranks" bench_allreduce -b 4K -e 256K -f 8 -n 3 --algorithms chain --transport "$transport" |
        tee sums.log
      grep -q 'Out of bounds values : 0 OK' sums.log || { echo "wrong sums on $ranks ranks, $transport"; exit 1; }
    done
  done
  rm -rf run-*
  train 1 tree
  train 2 chain
  train 4 chain
  "$bin/lockstep" diff run-tree-1/checkpoints/last.safetensors run-chain-2/checkpoints/last.safetensors
}

for recipe in "${recipes[@]}"; do "$recipe"; done
echo "built and passed: ${recipes[*]}"
