#!/usr/bin/env bash
# usage: install.sh BUILD
# Installs the build as a user would and builds the programs of examples/ against the installed files, with nothing of
# the source tree in reach. Each program must do what its file promises.
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
[ -d "$prefix/include" ] || fail "no headers are installed"
! grep -rlE '#include "(core|nn|comm|data|kernels|engine)/' "$prefix/include" || fail "headers name the tree"
nm -DC --defined-only "$(find "$prefix" -name liblockstep.so)" >"$work/symbols"
shown=$(grep -E '^[0-9a-f]+ [A-Z] (lockstep::(kernels|trainers)|__device_stub|cuda[A-Z])' "$work/symbols" || true)
[ -z "$shown" ] || fail "the library shows more than its public headers: ${shown%%$'\n'*}"
for program in train_convnet train_resnet; do
  grep -q shards "$prefix/share/bash-completion/completions/$program" || fail "$program has no completion"
done
cp -r examples "$work/examples"
programs=(minimal embed digits own_model own_layer powersgd finetune lion wide_resnet regression)
{  # one project, so that CMake looks for a compiler once
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(examples LANGUAGES CXX)\n'
  printf 'add_subdirectory(%s)\n' "${programs[@]}"
} >"$work/examples/CMakeLists.txt"
{ cmake -S "$work/examples" -B "$work" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$work" -j 2; } \
  >"$work/log" 2>&1 || { cat "$work/log"; fail "the examples cannot be built"; }

# minimal: two ranks end with the same weight.
ranks=$(scripts/run -np 2 "$work/minimal/minimal")
[ "$(grep -oE 'weight .*' <<<"$ranks" | sort -u | wc -l)" = 1 ] || fail "minimal: $ranks"

# embed: the same bits as the program's run, on 1 and 2 ranks.
"$prefix/bin/train_convnet" -o "$work/run" --quiet --seed 42 --global-batch-size 64 --shards 4 --bn-groups 4 --lr 0.02 \
  --momentum 0.9 --epochs 1 --max-steps 100 --no-eval >"$work/log"
for ranks in 1 2; do
  "$work/embed/embed" "$work/embed.safetensors" $ranks >"$work/said"
  "$prefix/bin/lockstep" diff "$work/run/checkpoints/last.safetensors" "$work/embed.safetensors" >"$work/log" ||
    { cat "$work/log"; fail "embed on $ranks ranks has other bits"; }
done
grep -E '9[0-9]\.[0-9]+ % of the test images' "$work/said"

# digits: two ranks without MPI reach 97 %.
"$work/digits/digits" >"$work/said"
grep -E '^(9[789]\.[0-9]+|100\.00) % of the test images' "$work/said" ||
  { cat "$work/said"; fail "digits learns too little"; }

# own_model: the same bits with threads and with the processes of a launcher.
model() {
  "$@" --steps 20 >"$work/said" || { cat "$work/said"; fail "own_model: $*"; }
}
model "$work/own_model/own_model" "$work/model1.safetensors" --threads 1
model "$work/own_model/own_model" "$work/model2.safetensors" --threads 2
model scripts/run -np 4 "$work/own_model/own_model" "$work/model4.safetensors"
for ranks in 2 4; do
  "$prefix/bin/lockstep" diff "$work/model1.safetensors" "$work/model$ranks.safetensors" >"$work/log" ||
    { cat "$work/log"; fail "own_model on $ranks ranks has other bits"; }
done
# A folder without the data set gives an error that says so.
! "$work/own_model/own_model" "$work/none.safetensors" --data "$work" 2>"$work/said" || fail "own_model found no data"
grep -q "^  why: " "$work/said" || fail "own_model does not say why: $(cat "$work/said")"

# own_layer: its gradients match finite differences.
"$work/own_layer/own_layer" || fail "own_layer has wrong gradients"

# powersgd: a seventh of the bytes, and it learns. It prints the same each time.
"$work/powersgd/powersgd" 2 0 | tee "$work/plain"
"$work/powersgd/powersgd" 2 2 | tee "$work/said"
"$work/powersgd/powersgd" 2 2 | cmp - "$work/said" || fail "powersgd prints something else the second time"
"$work/powersgd/powersgd" 1 | tee "$work/alone"
awk '{ bytes[NR] = $1; right[NR] = $5 }
  END { exit !(bytes[2] > 0 && bytes[2] * 6 < bytes[1] && right[2] > 85 && right[3] > 85) }' \
  "$work/plain" "$work/said" "$work/alone" || fail "powersgd saves or learns too little"

# lion: a training that goes on elsewhere has the bits of one that never stopped. wide_resnet: weights and logits have
# the same bits on 1 and 2 ranks, and so have regression's weights.
for ranks in 1 2; do
  mkdir -p "$work/own$ranks"
  (cd "$work/own$ranks" && ../lion/lion $ranks $((ranks * ranks)) && ../wide_resnet/wide_resnet $ranks 3 . &&
    ../regression/regression $ranks regression.safetensors) >"$work/said" ||
    fail "own optimizer, network, data: $(cat "$work/said")"
  grep -E 'mean squared error [0-9.]+e-0[3-9]' "$work/said" || fail "regression learns too little: $(cat "$work/said")"
done
for file in lion weights logits regression; do
  cmp "$work"/own{1,2}/$file.safetensors || fail "$file.safetensors depends on the number of ranks"
done

# finetune: weights of another training below a new classifier. Only the classifier changes.
python3 tests/e2e/make_small_data.py "$work/small"
"$prefix/bin/train_resnet" -a resnet18 --dataset shapes -b 16 --max-steps 20 --no-eval --quiet -o "$work/run18" \
  >"$work/log"
body=$work/run18/checkpoints/last.safetensors tuned=$work/tuned.safetensors
"$work/finetune/finetune" "$body" "$work/small/photos" "$tuned" 32 5 | tee "$work/said"
grep -qE "^after an epoch: (100|[6-9][0-9])\." "$work/said" || fail "finetune learns too little"
python3 - "$body" "$tuned" <<'END' || fail "finetune changed the body"
import json, sys

def tensors(path):
    content = open(path, "rb").read()
    begin = 8 + int.from_bytes(content[:8], "little")
    entries = json.loads(content[8:begin])
    entries.pop("__metadata__", None)
    data = memoryview(content)[begin:]
    return {n: (e["shape"], data[slice(*e["data_offsets"])]) for n, e in entries.items()}

body, tuned = map(tensors, sys.argv[1:])
frozen = [name for name in body if not name.startswith("fc.") and name.endswith((".weight", ".bias"))]
assert len(frozen) == 60 and all(body[name] == tuned[name] for name in frozen), len(frozen)
assert body["fc.weight"][0] == [10, 512] and tuned["fc.weight"][0] == [2, 512]
END

# pkg-config gives a compiler the same information.
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name lockstep.pc)")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs lockstep)"
"${CXX:-c++}" "$work/examples/minimal/main.cpp" "${flags[@]}" -o "$work/by_hand" || fail "pkg-config's flags do not do"
LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name liblockstep.so)") "$work/by_hand" | grep -q "step 10 loss"

# It also finds the prefix from a deeper folder, such as lib/x86_64-linux-gnu/pkgconfig.
deeper=("-DLOCKSTEP_"{CUDA,TESTS,BENCH}"=OFF" -DCMAKE_INSTALL_LIBDIR=lib/any)
cmake --preset release -B "$work/deeper" "${deeper[@]}" >"$work/log" ||
  { cat "$work/log"; fail "it cannot be configured for lib/any"; }
grep -q '^prefix=.*}/\.\./\.\./\.\./*$' "$work/deeper/lockstep.pc" || fail "lockstep.pc has a wrong prefix for lib/any"
