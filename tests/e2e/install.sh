#!/usr/bin/env bash
# usage: install.sh BUILD
# Installs the build as a user would and builds the programs of examples/ against what is installed, with nothing of
# the tree in reach; each shows what its file promises.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

cmake --install "$build" --prefix "$prefix" --strip >"$work/log" || { cat "$work/log"; fail "it cannot be installed"; }
! grep -rlE '#include "(core|nn|comm|data|kernels|engine)/' "$prefix/include" || fail "headers name the tree"
shown=$(nm -DC --defined-only "$(find "$prefix" -name liblockstep.so)" |
  grep -E '^[0-9a-f]+ [A-Z] (lockstep::(kernels|trainers)|__device_stub|cuda[A-Z])' || true)
[ -z "$shown" ] || fail "the library shows more than its public headers: ${shown%%$'\n'*}"
cp -r examples "$work/examples"
programs=(minimal embed)
for name in "${programs[@]}"; do
  if ! { cmake -S "$work/examples/$name" -B "$work/$name" -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build "$work/$name"; } >"$work/log" 2>&1; then
    cat "$work/log"
    fail "$name cannot be built"
  fi
done

# minimal: two ranks hold the same weight.
ranks=$(scripts/run -np 2 "$work/minimal/minimal")
[ "$(grep -oE 'weight .*' <<<"$ranks" | sort -u | wc -l)" = 1 ] || fail "minimal: $ranks"

# embed: the bits of the program's run, on 1 and 2 ranks.
"$prefix/bin/train_convnet" -o "$work/run" --quiet --seed 42 --global-batch-size 64 --shards 4 --bn-groups 4 --lr 0.02 \
  --momentum 0.9 --epochs 1 --max-steps 100 --no-eval >"$work/log"
for ranks in 1 2; do
  "$work/embed/embed" "$work/embed.safetensors" $ranks >"$work/said"
  "$prefix/bin/lockstep" diff "$work/run/checkpoints/last.safetensors" "$work/embed.safetensors" >"$work/log" ||
    { cat "$work/log"; fail "embed on $ranks ranks has other bits"; }
done
grep -E '9[0-9]\.[0-9]+ % of the test images' "$work/said"

# pkg-config tells a compiler the same.
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name lockstep.pc)")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs lockstep)"
"${CXX:-c++}" "$work/examples/minimal/main.cpp" "${flags[@]}" -o "$work/by_hand" || fail "pkg-config's flags do not do"
LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name liblockstep.so)") "$work/by_hand" | grep -q "step 10 loss"
