#!/usr/bin/env bash
# usage: tests/long/stream_orders.sh MNIST PHOTOS [STEPS [SEEDS]]      default: 6 steps, 10 seeds
# --device cuda in emulation, every combination: ConvNet (on images of MNIST, whose gzipped files lie in that folder),
# ResNet-20 (on photos of the class folders PHOTOS, 16 pixels wide) x O0, O2 x graph, eager x 1 rank, and 2 and 4 over
# NCCL, CUDA IPC and the host x streams eager, lazy and in SEEDS random orders. All of a network and level leave the
# same bits.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$root/build/release/bin mnist=$1 photos=$(cd "$2" && pwd) steps=${3:-6} seeds=${4:-10}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A few images: an evaluation of all would take longer than the steps.
few_digits() {
  mkdir -p "$work/mnist"
  python3 - "$mnist" "$work/mnist" <<'PYTHON'
import gzip, struct, sys
from pathlib import Path

for name, count in (("train", 300), ("t10k", 20)):
    for kind, size in (("images-idx3", 784), ("labels-idx1", 1)):
        data = gzip.decompress(Path(sys.argv[1], f"{name}-{kind}-ubyte.gz").read_bytes())
        header = data[:4] + struct.pack(">I", count) + data[8 : 16 if size > 1 else 8]
        Path(sys.argv[2], f"{name}-{kind}-ubyte").write_bytes(header + data[len(header) :][: count * size])
PYTHON
}
few_photos() {
  local folder to
  for folder in "$photos"/{train,val}/*/; do
    to=$work/photos/${folder#"$photos"/}
    mkdir -p "$to"
    find "$folder" -type f | sort | sed -n 1,8p | xargs -I{} ln -s {} "$to"
  done
}

train() {  # NAME NETWORK RANKS STREAMS ARGS...
  local name=$1 program=$2 ranks=$3 streams=$4 of_network=("$work/mnist" --dataset mnist)
  [ "$program" = train_convnet ] ||
    of_network=("$work/photos" -a resnet20 --train-crop-size 16 --val-resize-size 16 --val-crop-size 16)
  LOCKSTEP_EMULATION_DEVICES=4 LOCKSTEP_EMULATION_STREAMS=$streams "$root/scripts/run" -np "$ranks" \
    "$bin/${program}_emulated" "${of_network[@]}" --device cuda --workers 0 --lr 0.01 --global-batch-size 8 --shards 4 \
    --bn-groups 4 --bucket-cap-mb 0.1 --max-steps "$steps" --overwrite -o "$work/$name" "${@:5}" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; return 1; }
}
weights() { echo "$work/$1/checkpoints/last.safetensors"; }

few_digits
few_photos
orders=(eager lazy)
for ((seed = 1; seed <= seeds; ++seed)); do orders+=("random:$seed"); done
runs=0
for program in train_convnet train_resnet; do
  for level in O0 O2; do
    train base $program 1 eager --opt-level $level
    for graph in graph no-graph; do
      for way in 1 {2,4}:{nccl,ipc,shm}; do
        exchange=()
        [ "$way" = 1 ] || exchange=(--transport "${way#*:}")
        for order in "${orders[@]}"; do
          train run $program "${way%:*}" "$order" --opt-level $level --$graph "${exchange[@]}"
          "$bin/lockstep" diff "$(weights base)" "$(weights run)" >"$work/log" ||
            { cat "$work/log"; echo "$program $level $graph $way, streams $order: other bits" >&2; exit 1; }
          runs=$((runs + 1))
        done
      done
      echo "$program $level $graph: the same bits"
    done
  done
done
echo "$runs runs of $steps steps left the bits of one rank with eager streams"
