#!/usr/bin/env bash
# usage: bench/gpu_suite.sh [--programs DIR] [--results DIR] [--only PART,...] [--minutes N]
#        bench/gpu_suite.sh --rehearse [--programs DIR] [--results DIR] [--only PART,...]
#        bench/gpu_suite.sh [--programs DIR] --bundle FILE.tar.gz
# Day one on a machine with NVIDIA GPUs: what is right, then what is fast. Parts, each under ten minutes, in this order:
#   build      the programs; left out with --programs
#   plan       what lockstep plan promises for this card
#   tests      test_cuda
#   memcheck racecheck initcheck synccheck      test_cuda under compute-sanitizer, where that is installed
#   step       a training step of three networks against the CPU's, layer by layer
#   memory     ResNet-50 with the largest batch that the plan promises
#   nccl-1     ConvNet on one rank over NCCL, with our sum and with NCCL's, to the bits without it
#   nccl-2 nccl-4 nccl-8      where there are as many GPUs: bits of one rank, graph and eager; NCCL's own sum;
#              batch norm over ranks; a rank that is killed; images per second beside one rank's
#   ranks      2 and 4 ranks on one GPU over CUDA IPC, with the bits of one
#   norms      the kernels of batch norm that a training runs
#   train      whole trainings, ConvNet's with and without a graph and with the engines of a plan file to the same bits
#   speed-amp speed-rule speed-compile speed-max-autotune speed-f32 speed-tf32 speed-convnet speed-small
#              our training step on data that stays on the GPU beside PyTorch's, in turn, where python3 has PyTorch
#   input      the same step with images from the loader
#   trace      ten steps: nsys's report where that is installed, and each step's time
#   jpeg       a training on JPEG files, from LOCKSTEP_PHOTOS or made by Python's PIL
#   bench      bench_kernels, its CUDA cases, and peers: PyTorch's ops on the same shapes
# Results go to bench/results as they come, with summary.md and summary.html, which compare each figure with its goal
# (bench/gpu_goals.json) and the plan's prediction; logs go to build/gpu-suite. With --results DIR all goes there. A
# part that has passed on these programs is not repeated unless --only names it; one that runs out of time says so,
# and the next goes on. With --minutes no part begins that could not end by then; call again for the rest. --rehearse
# runs every part on the emulated machine, on very little; its results go to build/gpu-rehearsal. --bundle packs
# built programs and the libraries they need, for a machine that cannot build, into at most 64 MB. Exit status 1 when
# a part failed, 5 without a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n 's/^# usage: /usage: /p; s/^#        bench/       bench/p' "$0" >&2
  exit 2
}

parts=(build plan tests memcheck racecheck initcheck synccheck step memory nccl-1 nccl-2 nccl-4 nccl-8 ranks norms train
  speed-amp speed-rule speed-compile speed-max-autotune speed-f32 speed-tf32 speed-convnet speed-small input trace jpeg
  bench peers)
export SUITE_BUILT="test_cuda bench_kernels bench_train train_convnet train_resnet lockstep"
export SUITE_WORK=build/gpu-suite SUITE_PROGRAMS=build/release/bin SUITE_RESULTS=bench/results SUITE_REHEARSES=""
bundle="" only="" minutes="" results="" built_for_emulation="test_cuda_fast bench_kernels_emulated bench_train_emulated"
built_for_emulation+=" train_convnet_emulated train_resnet_emulated lockstep"
while [ $# -gt 0 ]; do
  case "$1" in
    --rehearse)
      SUITE_REHEARSES=yes SUITE_BUILT=$built_for_emulation
      [ -n "$results" ] || SUITE_RESULTS=build/gpu-rehearsal SUITE_WORK=build/gpu-rehearsal/logs
      shift
      continue
      ;;
    *) [ $# -ge 2 ] || usage ;;
  esac
  case "$1" in
    --bundle) bundle=$2 ;;
    --programs) SUITE_PROGRAMS=$2 parts=("${parts[@]/#build/}") ;;
    --results) results=$2 SUITE_RESULTS=$2 SUITE_WORK=$2/logs ;;
    --only) only=${2//,/ } ;;
    --minutes) minutes=$2 ;;
    *) usage ;;
  esac
  shift 2
done
for part in $only; do
  [[ " ${parts[*]} " == *" $part "* ]] || usage
done
[[ ${minutes:-1} =~ ^[1-9][0-9]*$ ]] || usage
[ -z "$SUITE_REHEARSES" ] || [ -z "$bundle" ] || usage

# The C and C++ libraries stay out: the other machine's may be newer, and other programs there want them.
make_bundle() {
  local bytes folder built
  read -ra built <<<"$SUITE_BUILT"
  [ -z "${parts[0]}" ] || bench/gpu_part.sh build
  folder=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$folder'" EXIT
  mkdir "$folder/lib"
  cp "${built[@]/#/$SUITE_PROGRAMS/}" "$folder"
  git rev-parse --short HEAD >"$folder/commit"
  ldd "${built[@]/#/$folder/}" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -Ev '/lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so' | sort -u | xargs cp -Lt "$folder/lib"
  strip "${built[@]/#/$folder/}" "$folder"/lib/*
  tar -C "$folder" -czf "$bundle" .
  bytes=$(stat -c %s "$bundle")
  echo "gpu_suite: $((bytes / 1000000)) MB in $bundle; there, where it is unpacked: bench/gpu_suite.sh --programs DIR"
  [ "$bytes" -le 64000000 ] || { echo "gpu_suite: error: more than 64 MB" >&2; return 1; }
}

require_gpu() {
  local why
  if [ -n "$SUITE_REHEARSES" ]; then
    return 0
  elif [ -z "${CUDA_VISIBLE_DEVICES-all}" ]; then
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
  echo "  try: a machine with one, see --bundle; here: bench/gpu_suite.sh --rehearse --results DIR" >&2
  exit 5
}

# run_part LIMIT PART: sets `state` to a word for the part's file.
running=""
run_part() {
  local limit=$1 part=$2 code=0
  timeout -k 10 "$limit" bench/gpu_part.sh "$part" >"$SUITE_WORK/$part.log" 2>&1 &
  running=$!  # timeout makes it a process group of its own
  wait $running || code=$?
  running=""
  case $code in
    0) state=passed ;;
    77) state=absent ;;
    124 | 137) state=out-of-time && echo "ran out of its $limit s" >>"$SUITE_WORK/$part.log" ;;
    *) state=failed ;;
  esac
}
# shellcheck disable=SC2317  # called by traps
end_part() {  # else it would go on, and what is measured next would share the GPU with it
  [ -z "$running" ] || kill -TERM -- "-$running" 2>/dev/null || true
  exit "$1"
}

if [ -n "$bundle" ]; then
  make_bundle
  exit
fi
require_gpu
PATH=$PATH:/usr/local/cuda/bin
export LOCKSTEP_GOLDEN_DIR=$PWD/tests/golden
mkdir -p "$SUITE_WORK" "$SUITE_RESULTS"
SUITE_COMMIT=$(cat "$SUITE_PROGRAMS/commit" 2>/dev/null || git rev-parse --short HEAD)
export SUITE_COMMIT
read -ra programs <<<"$SUITE_BUILT"

version_of_programs() {
  { cat "${programs[@]/#/$SUITE_PROGRAMS/}" 2>/dev/null || true; } | sha256sum | cut -c1-16
}

trap 'end_part 130' INT
trap 'end_part 143' TERM HUP
status=0 state=""
version=$(version_of_programs)
for part in ${only:-${parts[@]}}; do
  if [ -z "$only" ] && [ "$part" != build ] && grep -qs "^passed .* $version$" "$SUITE_WORK/$part".state; then
    echo "== $part: passed before"
    continue
  fi
  limit=${LOCKSTEP_SUITE_LIMIT:-570}  # seconds of a part
  if [ -n "$minutes" ] && [ $((SECONDS + 30)) -gt $((minutes * 60)) ]; then
    echo "== $part and what follows: no time is left; call again"
    break
  elif [ -n "$minutes" ] && [ $((SECONDS + limit)) -gt $((minutes * 60)) ]; then
    limit=$((minutes * 60 - SECONDS))
  fi
  begin=$SECONDS
  run_part "$limit" "$part"
  [ "$part" != build ] || version=$(version_of_programs)
  echo "== $part: $state after $((SECONDS - begin)) s"
  case $state in failed | out-of-time) status=1 && tail -n 20 "$SUITE_WORK/$part.log" ;; esac
  echo "$state $((SECONDS - begin)) $version" >"$SUITE_WORK/$part".state
  python3 bench/gpu_results.py suite "$SUITE_RESULTS" "$SUITE_COMMIT" "$SUITE_WORK"/*.state
  python3 bench/gpu_summary.py "$SUITE_RESULTS"
  [ "$part" != build ] || [ "$state" = passed ] || break  # there would be none, or an older commit's programs
done
exit $status
