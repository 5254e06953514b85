#!/usr/bin/env bash
# usage: scripts/setup.sh [train|test]
# Installs what building and training (train, the default) or building and testing (test) needs, on
# Debian 12, Ubuntu 24.04 and their kin. Asks apt only for what is missing; uses sudo only when not root.
# What tests need newer than these systems have it comes from PyPI into build/tools.
set -euo pipefail

build_packages=(g++ make cmake ninja-build ccache pkg-config git python3
  libopenmpi-dev openmpi-bin libdnnl-dev ocl-icd-opencl-dev libcli11-dev nlohmann-json3-dev libfmt-dev
  zlib1g-dev libxxhash-dev libjpeg-dev libpng-dev)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev libboost-context-dev
  clang-format-19 shellcheck iproute2 procps xz-utils)

python3 -m pip --version >/dev/null 2>&1 || test_packages+=(python3-pip)

case "${1:-train}" in
  train) packages=("${build_packages[@]}") ;;
  test) packages=("${build_packages[@]}" "${test_packages[@]}") ;;
  *) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null; then
  echo "setup: this system has no apt-get; please install by hand the equivalents of:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  exit 5
fi

# What reads compiled kernels (tools/cubins.py), and a clang-tidy that looks past the headers of libraries
# (19 takes five times as long); without them the tests labeled cuda-compile and lint.tidy fail.
tools=build/tools
wheels=(nvidia-cuda-cuobjdump==13.2.51 nvidia-cuda-nvdisasm==13.2.51 clang-tidy==22.1.8)

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
export DEBIAN_FRONTEND=noninteractive
install() { "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  install "${missing[@]}"
fi

# Where CUDA is built, NCCL for gradients between GPUs: NVIDIA's repository, if apt knows it, has one for each CUDA.
nvcc=$(type -P nvcc || type -P /usr/local/cuda/bin/nvcc || true)
if [ -n "$nvcc" ] && [ ! -e "${nvcc%/bin/nvcc}/include/nccl.h" ] && [ ! -e /usr/include/nccl.h ]; then
  cuda=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/+cuda\1./p')
  nccl=$(apt-cache madison libnccl-dev 2>/dev/null | awk -v cuda="$cuda" 'index($3, cuda) && !n++ {print $3}')
  if [ -n "$nccl" ]; then
    echo "setup: installing libnccl-dev $nccl"
    install "libnccl2=$nccl" "libnccl-dev=$nccl" || echo "setup: apt could not, so the build has no NCCL" >&2
  fi
fi

[ "${1:-train}" = test ] || exit 0
cd "$(dirname "$0")/.."
absent=()
for wheel in "${wheels[@]}"; do
  name=${wheel//-/_}
  [ -d "$tools/${name/==/-}.dist-info" ] || absent+=("$wheel")
done
if [ ${#absent[@]} -gt 0 ]; then
  echo "setup: installing ${absent[*]} into $tools"
  if python3 -m pip install -q --no-deps --disable-pip-version-check --root-user-action=ignore \
    --upgrade --target $tools "${absent[@]}"; then
    chmod +x $tools/nvidia/*/bin/* $tools/clang_tidy/data/bin/*  # pip drops the execute bits
  else
    echo "setup: pip could not, so the tests labeled cuda-compile and lint.tidy will fail" >&2
  fi
fi
