#!/usr/bin/env bash
# usage: tests/long/toolkits.sh [FOLDER [TOOLKIT...]]
# Compiles all kernels and links `lockstep` with CUDA toolkits of several ages (12.4, 13.0 and 13.5, or those named),
# for the architectures that the build derives; shows that 11.8 is refused; has the assemblers of 12.6 and 12.9 take the
# PTX that 12.4 made; and compiles against the headers of cuDNN 9.0 with 12.4. Writes tests/long/toolkits.md. FOLDER
# keeps packages and builds (8 GB). Debian 12 with pip; nvcc of 12.4 is Debian 13's, of 11.8 Debian 12's, since pip's
# packages of CUDA 11 and 12 lack it. They are unpacked into FOLDER and not installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
source_tree=$PWD
folder=$(mkdir -p "${1:-build/toolkits}" && cd "${1:-build/toolkits}" && pwd)
wanted=("${@:2}")
[ ${#wanted[@]} -gt 0 ] || wanted=(12.4 13.0 13.5)
mkdir -p "$folder"/{lists/partial,cache/archives/partial,debs,rows}
rows=$folder/rows

cat >"$folder/debian.sources" <<'END'
Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm trixie
Components: main contrib non-free
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
cat >"$folder/apt.conf" <<END
Dir::State::lists "$folder/lists";
Dir::Cache "$folder/cache";
Dir::Etc::sourcelist "$folder/debian.sources";
Dir::Etc::sourceparts "/dev/null";
END

from_debian() {  # CUDA PACKAGE FILES: unpacks the files of that pattern into $folder/debian-CUDA
  local version into=$folder/debian-$1
  [ ! -e "$into/$2.done" ] || return 0
  APT_CONFIG=$folder/apt.conf apt-get update -qq
  version=$(APT_CONFIG=$folder/apt.conf apt-cache madison "$2" | awk -v v="$1." 'index($3, v) == 1 {print $3; exit}')
  mkdir -p "$into"
  (cd "$folder/debs" && APT_CONFIG=$folder/apt.conf apt-get download -qq "$2=$version")
  dpkg-deb --fsys-tarfile "$folder/debs/$2_$1"*.deb | tar -x -C "$into" --wildcards "$3"
  touch "$into/$2.done"
}

from_pip() {  # TARGET PACKAGE...
  local target=$1
  shift
  [ -d "$target" ] || python3 -m pip install -q --no-deps --disable-pip-version-check --root-user-action=ignore \
    --target "$target" "$@"
}

toolkit_12_4() {  # lays $folder/cuda-12.4 out as NVIDIA's installer does
  local top=$folder/cuda-12.4 pip=$folder/pip-12.4 debian=$folder/debian-12.4 package
  from_debian 12.4 nvidia-cuda-toolkit '*'
  from_debian 12.4 nvidia-cuda-dev '*/libcuda*rt*.a'
  from_pip "$pip" nvidia-cuda-{runtime,cccl}-cu12==12.4.127 nvidia-cuda-nvcc-cu12==12.4.131 nvidia-nvtx-cu12==12.4.127 \
    nvidia-cublas-cu12==12.4.5.8
  mkdir -p "$top"/{bin,include,lib64,nvvm/bin}
  cp "$debian"/usr/bin/{cudafe++,fatbinary,nvlink,ptxas,bin2c} "$top/bin/"
  cp -r "$debian"/usr/lib/nvidia-cuda-toolkit/bin/{nvcc,crt} "$top/bin/"
  cp "$debian/usr/lib/nvidia-cuda-toolkit/bin/cicc" "$top/nvvm/bin/"
  cp "$debian"/usr/lib/x86_64-linux-gnu/libcuda*rt*.a "$top/lib64/"
  cp -r "$pip/nvidia/cuda_nvcc/nvvm/libdevice" "$top/nvvm/"
  for package in cuda_runtime cuda_nvcc cuda_cccl nvtx cublas; do
    cp -r "$pip/nvidia/$package"/include/* "$top/include/"
    find "$pip/nvidia/$package" -name 'lib*.so*' -path '*/lib/*' -exec ln -sf {} "$top/lib64/" \;
  done
  ln -sf libcudart.so.12 "$top/lib64/libcudart.so"
  cat >"$top/bin/nvcc.profile" <<'END'
TOP              = $(_HERE_)/..
CICC_PATH        = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH            += $(CICC_PATH):$(_HERE_):
INCLUDES        +=  "-I$(TOP)/include" $(_SPACE_)
LIBRARIES        =+ $(_SPACE_) "-L$(TOP)/lib64"
END
  nvcc=$top/bin/nvcc
}

toolkit_13_5() {
  from_pip "$folder/pip-13.5" nvidia-{cuda-nvcc,cuda-crt,nvvm,cuda-runtime}==13.5.37 \
    nvidia-{cuda-cccl,nvtx,cublas}
  nvcc=$folder/pip-13.5/nvidia/cu13/bin/nvcc
  chmod +x "$folder"/pip-13.5/nvidia/cu13/{bin,nvvm/bin}/* 2>/dev/null || true  # pip drops the execute bits
}

toolkit_13_0() { nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc); }

seconds_since() { echo $((SECONDS - $1)); }
row() { printf '| %s | %s | %s | %s | %s | %s |\n' "${@:2}" >"$rows/$1"; }

compile() {  # TOOLKIT
  local build=$folder/build-$1 options=() begun kernels
  "toolkit_${1/./_}"
  "$nvcc" --version | grep -q "release $1," || { echo "$nvcc is not of $1"; exit 1; }
  if [ "$1" = 12.4 ]; then
    [ -d "$folder/cudnn-9.0" ] || from_pip "$folder/cudnn-9.0" nvidia-cudnn-cu12==9.0.0.312
    options=(-DCUDNN_INCLUDE_DIR="$folder/cudnn-9.0/nvidia/cudnn/include"
      -DCUDNN_LIBRARY="$folder/cudnn-9.0/nvidia/cudnn/lib/libcudnn.so.9" -DLOCKSTEP_CUDNN=ON)
  fi
  rm -rf "$build"
  cmake --preset release -B "$build" -DLOCKSTEP_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DLOCKSTEP_TESTS=OFF \
    -DLOCKSTEP_BENCH=OFF "${options[@]}" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
  begun=$SECONDS
  CCACHE_RECACHE=1 ninja -C "$build" lockstep_kernels_cuda
  kernels=$(seconds_since "$begun")
  begun=$SECONDS
  ninja -C "$build" lockstep
  row "$1" "$1" "$("$nvcc" --version | sed -n 's/.* V//p')" \
    "$(grep -o 'arch=compute_[0-9]*' "$build/build.ninja" | sed 's/arch=compute_/sm_/' | sort -Vu | paste -sd ' ')" \
    "$kernels s, $(($(stat -c %s "$build"/liblockstep_kernels_cuda.a) >> 20)) MiB" \
    "$(seconds_since "$begun") s, $(($(stat -c %s "$build/bin/lockstep") >> 20)) MiB" \
    "$(sed -n 's/^-- CUDNN: .*/cuDNN /p; s/^-- CUBLASLT: .*/cuBLASLt /p; s/^-- NCCL: .*/NCCL/p' "$build.log" | xargs)"
  [ "$1" = 12.4 ] || return 0
  "$build/bin/lockstep" plan -a convnet -b 100 --gpu h200 >"$folder/said"
  grep -F 'no engines: cuDNN is too old (it is 9.0.0, plans for' "$folder/said"
}

# PTX of 12.4 is what its programs bring to GPUs that came later: newer assemblers, as in drivers, take it.
assemble() {  # TOOLKIT VERSION ARCHITECTURE...
  local ptx begun=$SECONDS units=0 object
  from_pip "$folder/pip-$1" "nvidia-cuda-nvcc-cu12==$2"
  chmod +x "$folder/pip-$1/nvidia/cuda_nvcc/bin/ptxas"
  mkdir -p "$folder/ptx"
  if [ -z "$(ls "$folder/ptx")" ]; then
    toolkit_12_4
    for object in "$folder"/build-12.4/cuda_units/*_cuda.cu; do
      "$nvcc" -std=c++20 -fmad=false --expt-relaxed-constexpr -DFMT_USE_CONSTEXPR=1 -DFMT_CONSTEVAL= -I"$source_tree" \
        -arch=compute_90 -ptx -O3 -DNDEBUG "$object" -o "$folder/ptx/$(basename "$object" .cu).ptx"
    done
  fi
  for ptx in "$folder"/ptx/*.ptx; do
    for architecture in "${@:3}"; do
      "$folder/pip-$1/nvidia/cuda_nvcc/bin/ptxas" -arch="sm_$architecture" "$ptx" -o /dev/null
    done
    units=$((units + 1))
  done
  row "$1" "$1" "$2, ptxas alone" "$(printf 'sm_%s ' "${@:3}" | xargs)" \
    "$units units of PTX that 12.4 made for sm_90: $(seconds_since "$begun") s" "not run" ""
}

too_old() {  # TOOLKIT: nvcc is Debian's, where it is asked for its version and nothing else
  from_debian "$1" nvidia-cuda-toolkit '*'
  rm -rf "$folder/build-$1"
  cmake --preset release -B "$folder/build-$1" -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF \
    -DCMAKE_CUDA_COMPILER="$folder/debian-$1/usr/lib/nvidia-cuda-toolkit/bin/nvcc" >"$folder/said" 2>&1
  grep -A2 'CUDA is left out' "$folder/said"
  grep -q "why: .* is of CUDA $1, and 12.4 is the oldest" "$folder/said"
  grep -q '^-- CUDA: OFF' "$folder/said"
  row "$1" "$1" "Debian 12's" "" "" "" "refused: AUTO warns and builds without CUDA"
}

for toolkit in "${wanted[@]}"; do
  compile "$toolkit"
done
too_old 11.8
if [ -d "$folder/build-12.4/cuda_units" ]; then
  assemble 12.6 12.6.85 90
  assemble 12.9 12.9.86 90 100 120
fi
{
  cat <<END
# CUDA toolkits that compile the kernels

By \`tests/long/toolkits.sh\` on $(date +%F), commit $(git rev-parse --short HEAD), with \
$(c++ --version | head -n 1) on $(nproc) cores.
A toolkit's row is of its last run. "Kernels" are all units of \`kernels/*/*_cuda.cu\`, for the architectures that the
build derives; the program is \`lockstep\`, whose other objects may come from ccache.

| CUDA | nvcc | architectures | kernels | program linked | libraries found, or what was said |
|---|---|---|---|---|---|
END
  find "$rows" -type f -print0 | sort -zV | xargs -0 cat
  cat <<'END'

12.4 is built with the headers of cuDNN 9.0.0 and opens that library: `lockstep plan` says that plans for a GPU that is
not here need 9.11. Convolutions by 9.0.0 were not run, as there was no GPU.

Not to be had: nvcc, cicc and cudafe++ of 12.6 and 12.9, which no package of pip or Debian holds. Their assemblers take
the PTX of 12.4, for GPUs that 12.4 does not know too.
END
} >tests/long/toolkits.md
echo "toolkits: kernels compile with ${wanted[*]}, 11.8 is refused"
