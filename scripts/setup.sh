#!/usr/bin/env bash
# usage: scripts/setup.sh [train|test]
# Installs what building and training (train, the default) or building and testing (test) needs, on
# Debian 12, Ubuntu 24.04 and their kin. Asks apt only for what is missing; uses sudo only when not root.
set -euo pipefail

build_packages=(g++ make cmake ninja-build ccache pkg-config git python3
  libopenmpi-dev openmpi-bin libdnnl-dev ocl-icd-opencl-dev libcli11-dev nlohmann-json3-dev libfmt-dev
  zlib1g-dev libxxhash-dev)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev libboost-context-dev clang-format-19 clang-tidy-19
  shellcheck iproute2 procps xz-utils)

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

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "setup: installing ${missing[*]}"
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
