#!/usr/bin/env bash
# usage: tests/e2e/toolkits.sh: what cmake/LockstepToolkit.cmake derives from nvcc programs of many versions, including
# broken ones. They are fakes, and nothing else is configured.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >nvcc <<'END'
#!/bin/sh
case "$1" in
--version) echo "Cuda compilation tools, release $VERSION, V$VERSION.1"; [ -n "$VERSION" ] ;;
--list-gpu-code) for code in $CODES; do echo "sm_$code"; done ;;
*)
  echo "$*" >>"$CALLS"
  case "$*" in *"$FAILS_AT"*) [ -z "$COMPLAINT" ] && exit; printf 'In a.cu:\n%s\n' "$COMPLAINT" >&2; exit 2 ;; esac ;;
esac
END
chmod +x nvcc
cat >choose.cmake <<END
cmake_minimum_required(VERSION 3.25)
include($root/cmake/LockstepToolkit.cmake)
lockstep_choose_cuda()
message("CUDA \${LOCKSTEP_HAS_CUDA} \${CMAKE_CUDA_ARCHITECTURES}.")
END

choose() {  # CODE VARIABLE=VALUE... -- OPTION...: writes the output to said
  local code=$1 got=0 environment=()
  shift
  while [ "$1" != -- ]; do
    environment+=("$1")
    shift
  done
  shift
  : >calls
  env -u CUDAARCHS -u CUDAHOSTCXX CALLS="$work/calls" COMPLAINT= FAILS_AT= "${environment[@]}" \
    cmake -DCMAKE_CUDA_COMPILER="$work/nvcc" -DLOCKSTEP_CUDA=AUTO "$@" -P choose.cmake >said 2>&1 || got=$?
  [ $got = "$code" ] || { cat said; echo "exit code $got, expected $code: ${environment[*]} $*"; exit 1; }
}

says() {  # TEXT...: each is in the output, regardless of line breaks and indentation
  local text
  for text in "$@"; do
    tr -s ' \n' '  ' <said | grep -qF -- "$text" || { cat said; echo "expected: $text"; exit 1; }
  done
}

older="50 52 53 60 61 62 70 72 75 80 86 87 89 90"
cuda11_8=(VERSION=11.8 "CODES=35 37 $older")
cuda12_4=(VERSION=12.4 "CODES=$older")
cuda12_6=(VERSION=12.6 "CODES=$older")
cuda12_9=(VERSION=12.9 "CODES=$older 100 101 103 120 121")
cuda13_0=(VERSION=13.0 "CODES=75 80 86 87 88 89 90 100 110 103 120 121")
toolkit="try: install the CUDA toolkit 12.4 or newer, or pip install nvidia-cuda-nvcc nvidia-cuda-cccl nvidia-nvtx"

# The architectures depend on the compiler unless the user gives them.
choose 0 "${cuda12_4[@]}" --
says "CUDA ON 80;90."
for step in '-std=c++20 -c .*/cuda_probe.cu' '-cudart static' '-cudart shared'; do
  grep -q -- "^$step" calls
done
choose 0 "${cuda12_6[@]}" --
says "CUDA ON 80;90."
choose 0 "${cuda12_9[@]}" --
says "CUDA ON 80;90;100."
choose 0 "${cuda13_0[@]}" --
says "CUDA ON 80;90;100."
choose 0 "${cuda12_4[@]}" -- -DCMAKE_CUDA_ARCHITECTURES="86;90a-real"
says "CUDA ON 86;90a-real."
choose 0 "${cuda12_4[@]}" -- -DCMAKE_CUDA_ARCHITECTURES=native
says "CUDA ON native."
choose 0 "${cuda12_4[@]}" CUDAARCHS=89 --
says "CUDA ON ."  # CMake reads it
choose 0 "${cuda12_4[@]}" -- -DCMAKE_CUDA_HOST_COMPILER=/opt/g++-13
says "CUDA ON"
grep -q -- '-ccbin /opt/g++-13' calls

# With an unusable toolkit, AUTO continues without it and ON fails.
refused() {  # WHY TRY VARIABLE=VALUE... -- OPTION...
  local why=$1 try=$2
  shift 2
  choose 0 "$@"
  says "CMake Warning" "CUDA is left out" "why: $why" "$try" "CUDA OFF"
  choose 1 "$@" -DLOCKSTEP_CUDA=ON
  says "CMake Error" "LOCKSTEP_CUDA=ON, but CUDA cannot be built why: $why" "$try"
}
refused "$work/nvcc is of CUDA 11.8, and 12.4 is the oldest that compiles the kernels" "$toolkit" "${cuda11_8[@]}" --
refused "$work/nvcc does not say its version" "$toolkit" VERSION= CODES= --
refused "$work/nvcc --list-gpu-code names no architecture" "$toolkit" VERSION=12.4 CODES= --
refused "$work/nvcc knows none of sm_80, sm_90, sm_100" "$toolkit" VERSION=19.0 "CODES=190 200" --
refused "$work/nvcc does not know sm_120, the newest that it knows is sm_90" \
  "or -DCMAKE_CUDA_ARCHITECTURES=90, whose PTX newer GPUs run" \
  "${cuda12_4[@]}" -- -DCMAKE_CUDA_ARCHITECTURES="90;120"
refused "$work/nvcc does not know sm_103" "a newer CUDA toolkit, or" "${cuda12_6[@]}" CUDAARCHS=103 --
fails="why: a small program does not compile and link with $work/nvcc:"
refused "${fails#why: } cuda_runtime.h: No such file or directory" "$toolkit" \
  "${cuda12_4[@]}" "COMPLAINT=cuda_runtime.h: No such file or directory" --
for runtime in static shared; do
  refused "${fails#why: } ld: cannot find $runtime" "$toolkit" \
    "${cuda12_9[@]}" "COMPLAINT=ld: cannot find $runtime" FAILS_AT=$runtime --
done
refused "${fails#why: } host_config.h:137:2: error: #error -- unsupported GNU version! gcc later than 13" \
  "try: an older host compiler, as by -DCMAKE_CUDA_HOST_COMPILER=g++-12, or a newer CUDA toolkit" \
  "${cuda12_4[@]}" "COMPLAINT=host_config.h:137:2: error: #error -- unsupported GNU version! gcc later than 13" --

# Without nvcc, AUTO prints nothing.
choose 0 A= -- -DCMAKE_CUDA_COMPILER= -DLOCKSTEP_NVCC=
[ "$(cat said)" = "CUDA OFF ." ]
choose 1 A= -- -DCMAKE_CUDA_COMPILER= -DLOCKSTEP_NVCC= -DLOCKSTEP_CUDA=ON
says "why: no nvcc was found on PATH, in /usr/local/cuda or in Python's packages $toolkit"
echo "cmake/LockstepToolkit.cmake chooses by what each nvcc can do"
