#!/usr/bin/env bash
# usage: packages.sh FOLDER [MIRROR]: as root; FOLDER is what scripts/release.sh made, MIRROR Debian's archive.
# Each package in a Debian 12 of its own, empty by debootstrap: it installs, ten lines of CMake find it, examples/embed
# trains on two threads and its programs on two ranks by mpirun, to the same bits.
set -euo pipefail
folder=$(cd "$1" && pwd) mirror=${2:-http://deb.debian.org/debian}
work=$(mktemp -d)
root=$work/root
trap 'umount "$work"/*/proc 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
  echo "packages.sh: $*" >&2
  exit 1
}

logged() { "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; fail "this failed: $*"; }; }

inside() {
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}

options="--epochs 1 --max-steps 100 --no-eval --quiet --seed 42 --global-batch-size 64 --shards 4 --bn-groups 4
  --lr 0.02 --momentum 0.9"

enter() {  # NAME: a fresh copy of the empty system
  root=$work/$1
  cp -a "$work/empty" "$root"
  mount -t proc proc "$root/proc"
}

leave() {
  umount "$root/proc"
  rm -rf "$root"
}

use() {  # EXAMPLE RUN PREFIX: builds the example, trains by threads and by ranks, compares
  logged inside apt-get install -y -qq --no-install-recommends g++ cmake make
  logged inside cmake -S "$1" -B /tmp/embed -DCMAKE_PREFIX_PATH="$3"
  logged inside cmake --build /tmp/embed
  logged inside /tmp/embed/embed /tmp/embed.safetensors 2
  grep 'of the test images' "$work/log"
  # shellcheck disable=SC2086  # options are words
  logged inside $2 $options -o /tmp/run
  logged inside "${3:-/usr}/bin/lockstep" diff /tmp/run/checkpoints/last.safetensors /tmp/embed.safetensors
  echo "  mpirun's 2 ranks and 2 threads have the same bits"
}

[ "$(id -u)" = 0 ] || fail "only root may enter another system"
logged debootstrap --variant=minbase bookworm "$work/empty" "$mirror"
echo "empty Debian 12: $(du -sm "$work/empty" | cut -f1) MB"

deb=$(basename "$folder"/*.deb)
echo "$deb: $(stat -c %s "$folder/$deb") bytes"
enter deb
cp "$folder/$deb" "$root/tmp"
logged inside apt-get install -y -qq "/tmp/$deb"
echo "  $(inside sh -c 'dpkg-query -s lockstep | grep Installed-Size')"
[[ $(inside ldconfig -p) == *liblockstep.so* ]] || fail "ldconfig does not know the library"
use /usr/share/doc/lockstep/examples/embed "lockstep-run -np 2 train_convnet" ""
logged inside apt-get remove -y -qq lockstep
for left in usr/bin/train_convnet usr/include/lockstep; do
  [ ! -e "$root/$left" ] || fail "removed, it leaves /$left"
done
leave

tarball=$(basename "$folder"/*.tar.gz)
echo "$tarball: $(stat -c %s "$folder/$tarball") bytes"
enter tarball
mkdir -p "$root/opt/lockstep"
tar -xzf "$folder/$tarball" -C "$root/opt/lockstep" --strip-components 1
echo "  library: $(stat -c %s "$root"/opt/lockstep/lib/liblockstep.so.*.*.*) bytes"
logged inside /opt/lockstep/scripts/train.sh --epochs 1 --max-steps 20 -o /tmp/first  # asks apt for what is missing
grep -o 'Accuracy is.*' "$work/log"
use /opt/lockstep/examples/embed "/opt/lockstep/scripts/train.sh" /opt/lockstep
leave
echo "both packages install in an empty Debian 12, are found by CMake and train on 2 ranks"
