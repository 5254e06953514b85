#!/usr/bin/env bash
# usage: packages.sh BUILD
# Packs the build by cpack, unpacks it and moves the folder. A program is built against the folder, and its train.sh
# trains on 2 ranks with the same bits as the build. The .deb depends on the libraries that scripts/setup.sh installs.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tree=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "packages.sh: $*" >&2
  exit 1
}

logged() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "this failed: $*"; }; }

pack() {  # GENERATOR [ARGS...]
  (cd "$build" && logged cpack -B "$work/packages" -G "$@")
}

pack TGZ
(cd "$work/packages" && sha256sum --quiet -c ./*.tar.gz.sha256)
mkdir "$work/first place" "$work/second"
tar -xzf "$work"/packages/*.tar.gz -C "$work/first place"
mv "$work/first place"/* "$work/second/lockstep"
folder=$work/second/lockstep
readelf -d "$folder/bin/lockstep" >"$work/dynamic"
cuda=$(grep -o 'libcudart[^]]*' "$work/dynamic" || true)
if [ -z "$cuda" ]; then  # compiled kernels make them five times as large
  bytes=$(stat -c %s "$work"/packages/*.tar.gz)
  [ "$bytes" -lt 15000000 ] || fail "the package has $bytes bytes; at most 15 MB"
  bytes=$(stat -c %s "$folder"/lib/liblockstep.so.*.*.*)
  [ "$bytes" -lt 6000000 ] || fail "the library has $bytes bytes; at most 6 MB"
fi
! grep -rIlF -e "$tree" -e "$work" "$folder" || fail "these files name the folder that they were made in"
for file in "$folder"/bin/* "$folder"/lib/liblockstep.so; do
  readelf -d "$file" >"$work/dynamic"
  ! grep -E 'R(UN)?PATH' "$work/dynamic" | grep -Ev "ORIGIN${cuda:+|cuda|nvidia}" ||
    fail "$file looks in a fixed folder"
done

# Builds a program with the lines of CMake that docs/library.md shows, against the folder.
mkdir "$work/mine"
cp "$folder/examples/minimal/main.cpp" "$work/mine"
awk '/^```/ {inside = /cmake$/; next} inside' docs/library.md >"$work/mine/CMakeLists.txt"
logged cmake -S "$work/mine" -B "$work/mine/build" -DCMAKE_PREFIX_PATH="$folder"
logged cmake --build "$work/mine/build"
logged scripts/run -np 2 "$work/mine/build/mine"
grep -q "rank 1 weight" "$work/log" || fail "minimal: $(cat "$work/log")"

# Compiles the recipes of docs/library.md, each in a namespace, and links them without undefined symbols: all that they
# use must be exported.
awk 'BEGIN {print "#include <lockstep/lockstep.h>\nusing namespace lockstep;"}
  /^```$/ && inside {print "}"; inside = 0}
  inside {print}
  /^```cpp$/ {print "namespace recipe_" ++count " {"; inside = 1}
  END {exit count != 12}' docs/library.md >"$work/recipes.cpp" || fail "docs/library.md has not twelve recipes"
read -ra flags <<<"$(PKG_CONFIG_PATH=$folder/lib/pkgconfig pkg-config --cflags --libs lockstep)"
logged "${CXX:-c++}" -O0 -Wall -Wextra -Werror -fPIC -shared -Wl,-z,defs "$work/recipes.cpp" "${flags[@]}" -o "$work/r"

# What is compiled in asks for its notice.
grep -q "University of Cincinnati" "$folder/copyright" || fail "the folder lacks the libraries' notices"

# train.sh must build nothing there, and it can be called from any folder, to which its paths are relative.
options=(--epochs 1 --max-steps 30 --no-eval --seed 3 --quiet --shards 4 --bn-groups 4 --global-batch-size 64)
(cd "$work" && logged env -i PATH="$PATH" HOME="$HOME" "$folder/scripts/train.sh" "${options[@]}" -o there)
! grep -q "setup: installing" "$work/log" || fail "train.sh lacked packages: $(cat "$work/log")"
[ ! -e "$folder/build" ] || fail "train.sh built something"
logged scripts/run -np 2 "$build/bin/train_convnet" "${options[@]}" -o "$work/here"
logged "$folder/bin/lockstep" diff "$work"/{here,there}/checkpoints/last.safetensors

# The .deb: scripts/setup.sh run installs its dependencies, except those that every Debian has. Debian has no package of
# this CUDA, so that a build with CUDA is packed without a list of them.
if command -v dpkg-shlibdeps >/dev/null && grep -q VERSION_CODENAME=bookworm /etc/os-release; then
  pack DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip ${cuda:+-D CPACK_DEBIAN_PACKAGE_SHLIBDEPS=OFF}
  deb=$(echo "$work"/packages/*.deb)
  needed=$(dpkg-deb -f "$deb" Depends Recommends | sed 's/^[A-Z][a-z]*: //; s/([^)]*)//g' | tr -d ' ' | tr ',' '\n' |
    grep -Ev '^(libc6|libgcc-s1|libstdc\+\+6)$' | sort | xargs)
  known=$(sed -n 's/^run_packages=(\(.*\))$/\1/p' scripts/setup.sh | tr ' ' '\n' | sort | xargs)
  [ -n "$cuda" ] || [ "$needed" = "$known" ] ||
    fail "the .deb needs '$needed', scripts/setup.sh run installs '$known'"
  dpkg-deb -R "$deb" "$work/deb"
  [ -x "$work/deb/usr/bin/lockstep-run" ] || fail "the .deb has no lockstep-run"
  grep -q ldconfig "$work/deb/DEBIAN/triggers" || fail "the .deb runs no ldconfig"
fi
