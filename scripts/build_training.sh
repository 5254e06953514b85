#!/usr/bin/env bash
# usage: [LOCKSTEP_CUDA=ON|OFF] [CUDAARCHS=90] [LOCKSTEP_ISA_LEVELS=all] scripts/build_training.sh
# Builds the training programs into build/release/bin, for this machine: CUDA where a GPU's driver is, for that GPU's
# architecture (or CUDAARCHS), and the CPU kernels of this processor's x86-64 level. Prints what a GPU lacks here. An
# existing build folder keeps its configuration, unless it has no CUDA, or lacks a library of CUDA's, that is here now.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/release
needed_mb=300

say() { printf 'build: %s\n  why: %s\n  try: %s\n' "$1" "$2" "$3" >&2; }  # WHAT WHY TRY

cached() { sed -n "s/^$1:[A-Z]*=//p" $build/CMakeCache.txt 2>/dev/null || true; }

has_driver() {
  [ -e /dev/nvidiactl ] || { ldconfig -p 2>/dev/null || true; } | grep -q 'libcuda\.so\.1' ||
    { nvidia-smi -L 2>/dev/null || true; } | grep -q '^GPU '
}

absent_parts() {  # of those that CMake looks for beside nvcc: "CUDNN NCCL"
  local part
  for part in CUDNN CUBLASLT NCCL; do
    [ "$(cached LOCKSTEP_$part)" != OFF ] || continue
    ! grep -q "^${part}_[A-Z_]*:[A-Z]*=.*-NOTFOUND" $build/CMakeCache.txt || echo $part
  done
}

say_absent_parts() {
  local parts part names=() packages=() cuda follows
  parts=$(absent_parts)
  [ -n "$parts" ] || return 0
  cuda=$(scripts/nvcc.sh --major)
  for part in $parts; do
    case $part in
      CUDNN) names+=(cuDNN) packages+=("nvidia-cudnn-cu${cuda:-13}") ;;
      CUBLASLT) names+=(cuBLASLt) packages+=(nvidia-cublas) ;;
      NCCL) names+=(NCCL) packages+=("nvidia-nccl-cu${cuda:-13}") ;;
    esac
  done
  follows=$(sed -n 's/^-- Left out: \(CUDNN\|CUBLASLT\|NCCL\), so //p' build/configure.log | paste -sd ';')
  say "CUDA is built without ${names[*]}" "${follows//;/; }" \
    "scripts/setup.sh cuda (or pip install ${packages[*]}), then this again"
}

gpu_architectures() {  # such as "80 90"; nothing where nvidia-smi does not tell, or prints why it cannot
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true; } |
    { grep -xE '[0-9]+\.[0-9]+' || true; } | tr -d . | sort -un | xargs
}

mkdir -p build
free_mb=$(df -Pm build | awk 'NR == 2 {print $4}')
if [ "$free_mb" -lt $needed_mb ]; then
  say "build/ has $free_mb MB of free space" "building takes up to $needed_mb MB" \
    "free some space, or make build/ a link to a folder on a larger disk"
  exit 5
fi

options=() cuda=${LOCKSTEP_CUDA:-} without="LOCKSTEP_CUDA=OFF was asked for"
if [ -z "$cuda" ]; then
  cuda=AUTO without="no nvcc here that can be used"
  if ! has_driver; then
    cuda=OFF without="no GPU driver here"
  elif [ -z "$(scripts/nvcc.sh)" ]; then
    cuda=OFF without="no nvcc here"
    say "a GPU driver is here but no nvcc: the programs are built for the CPU alone" "kernels are compiled by nvcc" \
      "scripts/setup.sh cuda (or the CUDA toolkit 12.4 or newer), then this again"
  fi
fi
if [ -n "${CUDAARCHS:-}" ]; then
  options+=("-DCMAKE_CUDA_ARCHITECTURES=$CUDAARCHS")
elif [ "$cuda" != OFF ]; then
  read -ra found <<<"$(gpu_architectures)"
  usable=()
  for architecture in "${found[@]}"; do
    [ "$architecture" -lt 80 ] || usable+=("$architecture")
  done
  if [ ${#usable[@]} -gt 0 ]; then
    options+=("-DCMAKE_CUDA_ARCHITECTURES=$(IFS=';'; echo "${usable[*]}")")
  elif [ ${#found[@]} -gt 0 ] && [ -z "${LOCKSTEP_CUDA:-}" ]; then
    cuda=OFF without="the GPU is older than sm_80"
    say "this GPU is of sm_${found[0]}: the programs are built for the CPU alone" \
      "Lockstep's kernels need sm_80 or newer" "a GPU of the A100's generation or newer"
  fi
fi

if [ ! -f $build/build.ninja ]; then
  options+=("-DLOCKSTEP_CUDA=$cuda" "-DLOCKSTEP_ISA_LEVELS=${LOCKSTEP_ISA_LEVELS:-native}")
elif [ "$cuda" != OFF ] && [ -z "$(cached CMAKE_CUDA_COMPILER)" ]; then
  options+=("-DLOCKSTEP_CUDA=$cuda" "-DLOCKSTEP_ISA_LEVELS=${LOCKSTEP_ISA_LEVELS:-$(cached LOCKSTEP_ISA_LEVELS)}")
elif [ -n "${LOCKSTEP_ISA_LEVELS:-}" ] && [ "$LOCKSTEP_ISA_LEVELS" != "$(cached LOCKSTEP_ISA_LEVELS)" ]; then
  options+=("-DLOCKSTEP_CUDA=$(cached LOCKSTEP_CUDA)" "-DLOCKSTEP_ISA_LEVELS=$LOCKSTEP_ISA_LEVELS")
elif [ "$cuda" != OFF ] && [ -n "$(absent_parts)" ]; then
  options=("-DLOCKSTEP_CUDA=$(cached LOCKSTEP_CUDA)")
else
  options=()
fi
if [ ${#options[@]} -gt 0 ]; then
  cmake --preset release "${options[@]}" >build/configure.log 2>&1 || {
    cat build/configure.log >&2
    exit 5
  }
  grep -E '^ +(CUDA is left out|why: |try: )' build/configure.log >&2 || true
  levels=$(sed -n 's/^-- CPU kernels: //p' build/configure.log)
  with="without CUDA: $without"
  if grep -q '^-- CUDA: ON' build/configure.log; then
    with="with CUDA"
    say_absent_parts
  fi
  echo "build: for $levels, $with. To add more, put LOCKSTEP_CUDA=ON or LOCKSTEP_ISA_LEVELS=all before this command."
fi
cmake --build --preset release --target train_convnet train_resnet lockstep
