#!/usr/bin/env bash
# usage: scripts/release.sh FOLDER [COMMIT]
# Makes a release of COMMIT (HEAD) in FOLDER, which must be empty: the tarball and the .deb for the CPU, and their
# SHA256SUMS. Builds twice, in two folders and without ccache, and fails unless all bytes are the same.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -z "$(ls -A "$folder")" ] || { echo "release: $folder is not empty" >&2; exit 2; }
cd "$(dirname "$0")/.."
commit=$(git rev-parse --short "${2:-HEAD}^{commit}")  # HEAD may move meanwhile
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH CCACHE_DISABLE=1 TZ=UTC LC_ALL=C
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

release() {  # NAME: the packages in $work/NAME/packages
  local tree=$work/$1/source packages=$work/$1/packages name
  mkdir -p "$tree" "$packages"
  git archive "$commit" | tar -x -C "$tree"
  cmake --preset release -S "$tree" -B "$tree/build" -DLOCKSTEP_CUDA=OFF -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF \
    -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$tree/=" >"$work/log" || { cat "$work/log"; return 1; }
  cmake --build "$tree/build" >"$work/log" || { tail -n 40 "$work/log"; return 1; }
  (cd "$tree/build" && cpack -B "$packages" >"$work/log") || { cat "$work/log"; return 1; }
  # CPack takes the order and the owners of files from the disk.
  name=$(basename "$packages"/*.tar.gz .tar.gz)
  mkdir "$work/$1/unpacked"
  tar -xzf "$packages/$name.tar.gz" -C "$work/$1/unpacked"
  tar --sort=name --mtime=@"$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
    -C "$work/$1/unpacked" -cf - "$name" | gzip -9n >"$packages/$name.tar.gz"
  ! grep -rlF "$work" "$work/$1/unpacked" || { echo "release: these files name its folder"; return 1; }
  rm -rf "$packages"/_CPack_Packages "$packages"/*.sha256
  (cd "$packages" && sha256sum -- * >"$work/$1.sums")
  rm -rf "$tree" "$work/$1/unpacked"
}

release first
release another_place
diff "$work"/{first,another_place}.sums || { echo "release: two builds differ" >&2; exit 1; }
mv "$work"/first/packages/* "$folder"
mv "$work/first.sums" "$folder/SHA256SUMS"
(cd "$folder" && sha256sum -c --quiet SHA256SUMS && ls -l)
echo "two builds of $commit gave the same bytes"
