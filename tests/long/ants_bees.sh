#!/usr/bin/env bash
# usage: tests/long/ants_bees.sh PHOTOS [BIN [EPOCHS]]      default: build/release/bin, 8 epochs
# ResNet-18 on ants and bees (PHOTOS/train, PHOTOS/val), cut into 4 shards: from weights that our own training on the
# built-in shapes left, on 1, 2 and 4 ranks with the same bits, and on 3 ranks; the loss of training falls each time.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 2,4p "$0"; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
photos=$1 bin=${2:-$root/build/release/bin} epochs=${3:-8}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
weights() { echo "$work/$1/checkpoints/last.safetensors"; }

"$bin/train_resnet" --dataset shapes -a resnet18 --max-steps 200 -o "$work/shapes" > "$work/shapes.log"
echo "shapes: $(grep '^Accuracy' "$work/shapes.log" | tail -n 1)"
for ranks in 1 2 4 3; do
  start=$SECONDS shards=4
  [ $ranks != 3 ] || shards=3
  "$root/scripts/run" -np $ranks "$bin/train_resnet" "$photos" -a resnet18 --pretrained "$(weights shapes)" --lr 0.005 \
    --epochs "$epochs" --global-batch-size 24 --shards $shards --bn-groups 1 \
    -o "$work/$ranks" > "$work/$ranks.log"
  took=$((SECONDS - start))
  learned=$(python3 - "$work/$ranks/metrics.jsonl" << 'PYTHON'
import json, sys

lines = [json.loads(line) for line in open(sys.argv[1])]
train = {line["epoch"]: line["loss_avg"] for line in lines if line["split"] == "train"}  # the epoch's last
val = [line["acc1"] for line in lines if line["split"] == "val"]
first, *_, last = train.values()
assert last < first, f"the loss of training went from {first} to {last}"
print(f"loss of training {first:.3f} to {last:.3f}, best val accuracy {max(val):.1f} %")
PYTHON
)
  echo "$ranks ranks, $took s: $learned"
  [ $ranks = 3 ] || "$bin/lockstep" diff "$(weights 1)" "$(weights $ranks)"
done
echo "the same bits on 1, 2 and 4 ranks after $epochs epochs, and 3 ranks learn too"
