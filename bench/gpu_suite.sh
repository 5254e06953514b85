#!/usr/bin/env bash
# usage: bench/gpu_suite.sh [--programs DIR] [--results DIR] [--only PART]
#        bench/gpu_suite.sh [--programs DIR] --bundle FILE.tar.gz
# What a machine with an NVIDIA GPU is for: the kernels' tests on hardware, NVIDIA's compute-sanitizer over
# them, and the speed of kernels and of trainings beside PyTorch's. Parts, each under ten minutes, in this order:
#   build      the programs; left out with --programs
#   tests      test_cuda
#   train      whole trainings with --device cuda, ConvNet's with and without a graph to the same bits, and with the
#              engines that --autotune found to the same bits again, ResNet-50's with the times of those engines;
#              gpu.json describes the card for lockstep plan --gpu
#   nccl       ConvNet on one rank over NCCL, with our sum and with NCCL's, to the bits without it, where NCCL is
#   ranks      2 and 4 ranks on one GPU over CUDA IPC, with the bits of one, where mpirun is
#   memcheck racecheck initcheck synccheck      test_cuda under compute-sanitizer, where that is installed
#   bench      bench_kernels, its CUDA cases
#   peers      PyTorch's ops, on the same shapes, where python3 has PyTorch for this device
#   train-peers  PyTorch's training steps of both networks there: eager f32, channels_last with AMP, and that compiled
# A part that has passed on these programs is not repeated unless --only names it. gpu_suite.json, gpu.json,
# training_cuda.json, convolutions_cuda.json and kernels_cuda.json go to bench/results, logs to build/gpu-suite; with
# --results DIR there, and to DIR/logs. Exit status 1 when a part failed, 5 without a GPU. --bundle packs built programs
# and the libraries they need, for a machine that cannot build, into at most 60 MB.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n 's/^# usage: /usage: /p; s/^#        bench/       bench/p' "$0" >&2
  exit 2
}

parts=(build tests train nccl ranks memcheck racecheck initcheck synccheck bench peers train-peers)
built=(test_cuda bench_kernels train_convnet train_resnet lockstep)
work=build/gpu-suite
programs=build/release/bin bundle="" results=bench/results only=""
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case "$1" in
    --bundle) bundle=$2 ;;
    --programs) programs=$2 parts=("${parts[@]:1}") ;;
    --results) results=$2 work=$2/logs ;;
    --only) only=$2 ;;
    *) usage ;;
  esac
  shift 2
done
[ -z "$only" ] || [[ " ${parts[*]} " == *" $only "* ]] || usage

build() {
  cmake --preset release && cmake --build --preset release --target "${built[@]}"
}

# The C and C++ libraries stay out: the other machine's may be newer, and other programs there want them.
make_bundle() {
  local bytes
  [ "${parts[0]}" != build ] || build
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir "$folder/lib"
  cp "${built[@]/#/$programs/}" "$folder"
  git rev-parse --short HEAD >"$folder/commit"
  ldd "${built[@]/#/$folder/}" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -Ev '/lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so' | sort -u | xargs cp -Lt "$folder/lib"
  strip "${built[@]/#/$folder/}" "$folder"/lib/*
  tar -C "$folder" -czf "$bundle" .
  bytes=$(stat -c %s "$bundle")
  echo "gpu_suite: $((bytes / 1000000)) MB in $bundle; there, where it is unpacked: bench/gpu_suite.sh --programs DIR"
  [ "$bytes" -le 60000000 ] || { echo "gpu_suite: error: more than 60 MB" >&2; return 1; }
}

require_gpu() {
  local why
  if [ -z "${CUDA_VISIBLE_DEVICES-all}" ]; then
    why="CUDA_VISIBLE_DEVICES is empty, which hides every device"
  elif ! command -v nvidia-smi >/dev/null; then
    why="nvidia-smi is not there, so there is no NVIDIA driver"
  elif ! nvidia-smi -L 2>/dev/null | grep '^GPU' >/dev/null; then
    why="nvidia-smi -L names none"
  else
    return 0
  fi
  echo "gpu_suite: error: no NVIDIA GPU" >&2
  echo "  why: $why" >&2
  echo "  try: a machine with one, see --bundle; here: ctest --preset release -L emulated" >&2
  exit 5
}

# within COMMAND...: for ten minutes at most, with a bundle's libraries.
within() {
  timeout 570 env LD_LIBRARY_PATH="$programs/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
}

# possible PART: whether what it needs beside the programs is there; says what is not.
possible() {
  case "$1" in
    *check)
      command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not installed"; return 1; }
      ;;
    ranks) command -v mpirun >/dev/null || { echo "mpirun is not installed"; return 1; } ;;
    nccl)
      within python3 -c 'import ctypes; ctypes.CDLL("libnccl.so.2")' 2>/dev/null ||
        { echo "NCCL 2 is not installed, or not where LD_LIBRARY_PATH points"; return 1; }
      ;;
    peers | train-peers)
      python3 -c 'import torch; torch.zeros(1, device="cuda")' 2>/dev/null ||
        { echo "python3 has no PyTorch for this device"; return 1; }
      ;;
  esac
}

# train_one NAME PROGRAM ARGS...: a training of its own directory.
train_one() {
  local name=$1 program=$2
  shift 2
  within "$programs/$program" --device cuda --overwrite --output-dir "$work/runs/$name" "$@" ||
    { echo "training $name failed"; return 1; }
}

# same_bits NAME NAME: of the weights that two trainings ended with.
same_bits() {
  within "$programs/lockstep" diff "$work/runs/$1/checkpoints/last.safetensors" \
    "$work/runs/$2/checkpoints/last.safetensors"
}

train() {
  local failed=0 resnet50=(train_resnet -a resnet50 --dataset synthetic -b 256 -j 8 --max-steps 60)
  mkdir -p "$work/runs"
  within "$programs/lockstep" describe-gpu >"$results/gpu.json" || failed=1
  train_one convnet train_convnet || failed=1
  train_one convnet_eager train_convnet --no-graph || failed=1
  same_bits convnet convnet_eager || failed=1
  train_one convnet_tuned train_convnet --autotune || failed=1
  train_one convnet_planned train_convnet --plan-file "$work/runs/convnet_tuned/plans.json" || failed=1
  same_bits convnet_tuned convnet_planned || failed=1
  train_one convnet_o2 train_convnet --opt-level O2 || failed=1
  train_one resnet50_f32 "${resnet50[@]}" || failed=1
  train_one resnet50_o2 "${resnet50[@]}" --opt-level O2 || failed=1
  train_one resnet50_o2_tuned "${resnet50[@]}" --opt-level O2 --autotune &&
    python3 bench/gpu_results.py convolutions "$results" "$commit" "$work/runs/resnet50_o2_tuned/plans.json" ||
    failed=1
  train_one resnet50_o2_eager "${resnet50[@]}" --opt-level O2 --no-graph || failed=1
  python3 bench/gpu_results.py training "$results" "$commit" "$work"/runs/*/run.json || failed=1
  return $failed
}

# One rank has nobody to send to, so our sum needs NCCL's communicator alone; NCCL's own is a call in each step. In a
# folder of their own these runs stay out of training_cuda.json.
nccl() {
  local convnet=(train_convnet --max-steps 200)
  train_one nccl/none "${convnet[@]}" &&
    train_one nccl/tree "${convnet[@]}" --transport nccl && same_bits nccl/none nccl/tree &&
    train_one nccl/own "${convnet[@]}" --algorithm nccl && same_bits nccl/none nccl/own
}

# torch_step NETWORK/VARIANT ARGS...: a process of its own, since a compilation may crash or hang.
torch_step() {
  local file=$work/steps/$1.json
  mkdir -p "${file%/*}"
  timeout 180 python3 bench/peers/torch_step.py --device cuda --warmup 10 --steps 30 "${@:2}" >"$file" ||
    { echo "PyTorch's $1 failed"; rm "$file"; return 1; }
}

train_peers() {
  local failed=0 amp=(--channels-last --autocast f16)
  local convnet=(-a convnet -b 64) resnet50=(-a resnet50 -b 256)
  torch_step convnet/f32 "${convnet[@]}" || failed=1
  torch_step convnet/amp "${convnet[@]}" "${amp[@]}" || failed=1
  torch_step convnet/amp_compiled "${convnet[@]}" "${amp[@]}" --compile || failed=1
  torch_step resnet50/f32 "${resnet50[@]}" || failed=1
  torch_step resnet50/amp "${resnet50[@]}" "${amp[@]}" || failed=1
  torch_step resnet50/amp_compiled "${resnet50[@]}" "${amp[@]}" --compile || failed=1
  python3 bench/gpu_results.py train-peers "$results" "$commit" "$work"/steps/*/*.json || failed=1
  return $failed
}

run_part() {
  case "$1" in
    train) train ;;
    nccl) nccl ;;
    build) build ;;
    tests) within "$programs/test_cuda" --gtest_brief=1 ;;
    ranks) within tests/long/ranks_on_one_gpu.sh "$programs/train_convnet" ;;
    bench)
      within "$programs/bench_kernels" --benchmark_filter=^cuda/ "--benchmark_out=$work/bench.json" &&
        python3 bench/gpu_results.py kernels "$results" "$commit" "$work/bench.json"
      ;;
    peers)
      timeout 570 python3 bench/peers/torch_kernels.py >"$work/peers.json" &&
        python3 bench/gpu_results.py peers "$results" "$commit" "$work/peers.json"
      ;;
    train-peers) train_peers ;;
    *)  # without the allocator's cache, which would hide accesses beyond a tensor
      LOCKSTEP_NO_CUDA_CACHE=1 within compute-sanitizer --tool "$1" --error-exitcode 9 \
        "$programs/test_cuda" --gtest_brief=1
      ;;
  esac
}

if [ -n "$bundle" ]; then
  make_bundle
  exit
fi
require_gpu
PATH=$PATH:/usr/local/cuda/bin
export LOCKSTEP_GOLDEN_DIR=$PWD/tests/golden
mkdir -p "$work" "$results"
commit=$(cat "$programs/commit" 2>/dev/null || git rev-parse --short HEAD)

status=0
for part in "${parts[@]}"; do
  [ -z "$only" ] || [ "$only" = "$part" ] || continue
  version=$(cat "${built[@]/#/$programs/}" 2>/dev/null | sha256sum | cut -c1-16)
  if [ -z "$only" ] && [ "$part" != build ] && grep -qs "^passed .* $version$" "$work/$part".state; then
    echo "== $part: passed before"
    continue
  fi
  echo "== $part"
  begin=$SECONDS state=passed
  if ! possible "$part"; then
    state=absent
  elif ! run_part "$part" 2>&1 | tee "$work/$part".log; then
    state=failed
    status=1
  fi
  echo "$state $((SECONDS - begin)) $version" >"$work/$part".state
  python3 bench/gpu_results.py suite "$results" "$commit" "$work"/*.state
  [ "$part $state" != "build failed" ] || break
done
exit $status
