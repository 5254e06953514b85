#!/usr/bin/env bash
# usage: tests/long/ddp_tricks_curve.sh DATA [BIN [EPOCHS [FLAGS...]]]      default: build/release/bin, 6 epochs
# The first epochs of tutorial 000 on real MNIST, 2 ranks of 1,024 images: the validation accuracies that its author
# published, within .02. In f32: 16-bit products are slow on a CPU. DATA: the folder of MNIST/raw/*.gz. The run stays in
# runs/ddp_tricks_curve, and a second call goes on with it.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 2,5p "$0"; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
data=$1 bin=${2:-$root/build/release/bin} epochs=${3:-6}
run=runs/ddp_tricks_curve

start=$SECONDS
"$root/scripts/run" -np 2 "$bin/train_convnet" "$data" --dataset mnist --preset ddp-tricks --opt-level O0 \
  --epochs "$epochs" --save-steps 5 --keep 1 --resume auto -o "$run" "${@:4}"
python3 - "$run/metrics.jsonl" "$epochs" "$((SECONDS - start))" << 'PYTHON'
import json, sys

PUBLISHED = (0.1075, 0.2031, 0.4265, 0.6098, 0.7264, 0.8038, 0.8472, 0.8767, 0.8967, 0.9069, 0.9173, 0.9230)
metrics, epochs, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3]
lines = [json.loads(line) for line in open(metrics)]
accuracies = {line["epoch"]: line["acc1"] / 100 for line in lines if line["split"] == "val"}
for epoch, published in enumerate(PUBLISHED[:epochs]):
    ours = accuracies[epoch]
    print(f"epoch {epoch}: {ours:.4f}, published {published:.4f}")
    assert abs(ours - published) <= 0.02, f"epoch {epoch} is {ours - published:+.4f} off"
print(f"epochs 0 to {epochs - 1} hold the published accuracies within .02, {seconds} s")
PYTHON
