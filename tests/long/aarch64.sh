#!/usr/bin/env bash
# usage: tests/long/aarch64.sh [FOLDER]
# Builds Lockstep for aarch64 (GH200, GB200, Jetson) with Debian's cross compiler, against Debian's own arm64 packages
# of MPI, oneDNN, libjpeg and libpng, and runs test_core, test_kernels and test_data and 20 steps of training under
# qemu-user. Host code of CUDA is compiled where headers of CUDA are. Writes tests/long/aarch64.md. FOLDER keeps the
# packages and the build (700 MB); as root, on Debian 12.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mkdir -p "${1:-build/aarch64}" && cd "${1:-build/aarch64}" && pwd)
root=$folder/root bin=$folder/build/bin
export DEBIAN_FRONTEND=noninteractive

apt-get update -qq
apt-get install -y -qq --no-install-recommends g++-aarch64-linux-gnu qemu-user-static >/dev/null
scripts/setup.sh test

# The packages are unpacked and not installed, so that this system stays as it is.
mkdir -p "$folder"/{lists,archives}/partial "$root"
: >"$folder/status"
cat >"$folder/debian.sources" <<'END'
Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
cat >"$folder/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State "$folder";
Dir::State::status "$folder/status";
Dir::Cache "$folder";
Dir::Etc::sourcelist "$folder/debian.sources";
Dir::Etc::sourceparts "/dev/null";
END
packages=(libc6-dev libstdc++-12-dev libopenmpi-dev libdnnl-dev ocl-icd-opencl-dev libcli11-dev
  nlohmann-json3-dev libfmt-dev zlib1g-dev libxxhash-dev libjpeg-dev libpng-dev libgtest-dev libgmock-dev
  librapidcheck-dev)
APT_CONFIG=$folder/apt.conf apt-get update -qq
APT_CONFIG=$folder/apt.conf apt-get install -y -qq --no-install-recommends --download-only "${packages[@]}" >/dev/null
for package in "$folder"/archives/*.deb; do
  dpkg-deb -x "$package" "$root"
done

cat >"$folder/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT $root)
set(CMAKE_FIND_ROOT_PATH $root)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_\${kind} ONLY)
endforeach()
END
mpi=$root/usr/lib/aarch64-linux-gnu/openmpi
cmake --preset release -B "$folder/build" -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" -DLOCKSTEP_CUDA=OFF \
  -DLOCKSTEP_BENCH=OFF -DLOCKSTEP_{MPI,ONEDNN,CODECS}=ON -DMPI_CXX_SKIP_MPICXX=ON -DMPI_CXX_LIB_NAMES=mpi \
  -DMPI_mpi_LIBRARY="$mpi/lib/libmpi.so" -DMPI_CXX_HEADER_DIR="$mpi/include" >"$folder/configure.log" 2>&1 ||
  { cat "$folder/configure.log"; exit 1; }
grep -q '^-- CPU kernels: aarch64' "$folder/configure.log"
targets=(test_core test_kernels test_data train_convnet train_resnet lockstep)
ninja -C "$folder/build" "${targets[@]}"

emulated() { qemu-aarch64-static -L "$root" "$bin/$1" "${@:2}"; }
table=$folder/table.md
cat >"$table" <<END
# Lockstep on aarch64

By \`tests/long/aarch64.sh\` on $(date +%F), commit $(git rev-parse --short HEAD): \
$(aarch64-linux-gnu-g++ --version | sed 1q),
$(qemu-aarch64-static --version | sed 's/ (.*//;q'), oneDNN, Open MPI, libjpeg and libpng of Debian 12's arm64 packages.
The build has no warning, as with \`LOCKSTEP_WERROR\`.

| program | result |
|---|---|
END
tell() { echo "| \`$1\` | $2 |" >>"$table"; }
for test in test_core test_kernels test_data; do
  emulated $test --gtest_brief=1 >"$folder/said" 2>&1 || { tail -n 60 "$folder/said"; exit 1; }
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]* tests\).*/\1 passed/p' "$folder/said")
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]* test\).*/, \1 skipped/p' "$folder/said")
  tell $test "$passed$skipped"
done
rm -rf "$folder/run"
emulated train_convnet --max-steps 20 -o "$folder/run" >"$folder/said" 2>&1 || { cat "$folder/said"; exit 1; }
grep -q 'cpu aarch64' "$folder/said"
tell 'train_convnet --max-steps 20' "$(sed -n 's/^Accuracy is/accuracy on the built-in digits/p' "$folder/said")"

# The kernels are left out: they need an nvcc for such hosts.
cuda_headers=$(dirname "$(find -L /usr/local/cuda/include -name cudnn_graph.h 2>/dev/null | head -n 1)")
host_sources=(core/cuda/*.cpp kernels/support/cu*/*.cpp kernels/*/*cu{dnn,blaslt}*.cpp comm/{nccl,ipc}/*.cpp)
if [ -e "$cuda_headers/cublasLt.h" ] && [ -e "$cuda_headers/nccl.h" ]; then
  for file in "${host_sources[@]}"; do
    aarch64-linux-gnu-g++ --sysroot="$root" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I. \
      -isystem "$cuda_headers" -DLOCKSTEP_CUDA -DLS_ISA_LEVELS='"2"' "$file"
  done
  tell 'host code of CUDA' "${#host_sources[@]} files compile, and are not linked"
fi
cat >>"$table" <<'END'

Not run: ranks over MPI, shared memory and TCP (`train_resnet` and `lockstep` are built too), speed, and anything on a
real processor. Not compiled: kernels by an nvcc for aarch64 hosts, and the emulator of GPUs.
END
cp "$table" tests/long/aarch64.md
echo "aarch64: $(grep -c '^| `' "$table") programs ran under qemu-user as they do on x86-64"
