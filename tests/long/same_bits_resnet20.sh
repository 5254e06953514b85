#!/usr/bin/env bash
# usage: tests/long/same_bits_resnet20.sh [BIN [STEPS]]      default: build/release/bin, 100 steps
# ResNet-20 on the built-in shapes, cut into 8 shards, on 1, 2, 4 and 8 ranks: all leave the same bits.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${1:-$root/build/release/bin} steps=${2:-100}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run=(train_resnet --dataset shapes -a resnet20 --global-batch-size 64 --shards 8 --bn-groups 2 --max-steps "$steps")
weights() { echo "$work/$1/checkpoints/last.safetensors"; }

for ranks in 1 2 4 8; do
  start=$SECONDS
  "$root/scripts/run" -np $ranks "$bin/${run[0]}" "${run[@]:1}" -o "$work/$ranks" > "$work/$ranks.log"
  grep -q 'same bits on 1,2,4,8 ranks' "$work/$ranks.log"
  echo "$ranks ranks: $steps steps in $((SECONDS - start)) s"
  "$bin/lockstep" diff "$(weights 1)" "$(weights $ranks)"
done
echo "the same bits on 1, 2, 4 and 8 ranks after $steps steps"
