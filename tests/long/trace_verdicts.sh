#!/usr/bin/env bash
# usage: tests/long/trace_verdicts.sh BIN PHOTOS [RUNS]
# Traces RUNS (20) runs on 2 ranks with each planted cause, a slow rank, a slow network and a slow loader, and as many
# quiet ones, and counts how often lockstep trace names the cause, or none. PHOTOS has ants and bees in train and val.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
bin=$1 photos=$2 runs=${3:-20}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0

count() {  # NAME FAULT EXPECTED PROGRAM ARGS...
  local name=$1 fault=$2 expected=$3 right=0 said
  shift 3
  for ((i = 0; i < runs; ++i)); do
    rm -rf "$work/run"
    LOCKSTEP_FAULT=$fault "$root/scripts/run" -np 2 "$bin/$1" "${@:2}" --threads 1 -q -o "$work/run" \
      > "$work/log" 2>&1 ||
      { cat "$work/log"; exit 1; }
    said=$("$bin/lockstep" trace "$work/run" | tail -1)
    if [[ $said == "verdict $expected"* ]]; then right=$((right + 1)); else echo "  $name: $said"; fi
  done
  echo "$name: $right of $runs"
  [ "$right" -eq "$runs" ] || wrong=$((wrong + 1))
}
convnet=(train_convnet --max-steps 24 -b 32 --trace 6:23)
resnet=(train_resnet "$photos" -a resnet20 --train-crop-size 32 --val-resize-size 32 --val-crop-size 32 -b 4
  --max-steps 24 --no-eval --lr 0.01 --trace 6:23)
count "slow rank" slow:rank=1,ms=20 "rank 1 is slow" "${convnet[@]}"
count "slow network" slownet:ms=20 "the network" "${convnet[@]}"
count "slow loader" slowdecode:ms=60 "the loader" "${resnet[@]}"
count quiet "" none "${convnet[@]}"
[ $wrong -eq 0 ] && echo "each cause was named, and no other"
