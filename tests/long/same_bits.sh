#!/usr/bin/env bash
# usage: tests/long/same_bits.sh PROGRAM ARGS...
# Trains on 1, 2, 4 and 8 ranks: all leave the same bits. ARGS fix batch, shards, groups and where the run ends:
#   same_bits.sh bin/train_resnet -a resnet20 --global-batch-size 64 --shards 8 --bn-groups 2 --max-steps 100
#   same_bits.sh bin/train_resnet CIFAR10 --preset cifar-94 --shards 8
# KEEP: a folder for the runs' artifacts, KEEP/1 to KEEP/8. Without it they are deleted.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
program=$1
shift
lockstep=$(dirname "$program")/lockstep
if [ -n "${KEEP:-}" ]; then
  work=$KEEP
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
weights() { echo "$work/$1/checkpoints/last.safetensors"; }

for ranks in 1 2 4 8; do
  start=$SECONDS
  "$root/scripts/run" -np $ranks "$program" "$@" -o "$work/$ranks" > "$work/$ranks.log"
  grep -q 'same bits on 1,2,4,8 ranks' "$work/$ranks.log"
  echo "$ranks ranks: $((SECONDS - start)) s, $(grep -o '\* Acc@1 [0-9.]*' "$work/$ranks.log" | tail -1)"
  "$lockstep" diff "$(weights 1)" "$(weights $ranks)"
done
echo "the same bits on 1, 2, 4 and 8 ranks"
