#!/usr/bin/env bash
# usage: tests/long/trace_verdicts.sh BIN PHOTOS [RUNS]
# Traces RUNS (20) runs on 2 ranks with each planted cause, a slow rank, a slow network and a slow loader, and as many
# quiet ones, and counts how often lockstep trace and report.html name the cause, or none. PHOTOS has ants and bees in
# train and val.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
bin=$1 photos=$2 runs=${3:-20}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0

count() {  # NAME FAULT TRACE REPORT PROGRAM ARGS...
  local name=$1 fault=$2 of_trace=$3 of_report=$4 traced=0 reported=0 said
  shift 4
  for ((i = 0; i < runs; ++i)); do
    rm -rf "$work/run"
    LOCKSTEP_FAULT=$fault "$root/scripts/run" -np 2 "$bin/$1" "${@:2}" --threads 1 -q -o "$work/run" \
      > "$work/log" 2>&1 ||
      { cat "$work/log"; exit 1; }
    said=$("$bin/lockstep" trace "$work/run" | tail -1)
    if [[ $said == "verdict $of_trace"* ]]; then traced=$((traced + 1)); else echo "  $name: $said"; fi
    said=$(sed -n 's/.*<p class="verdict">\(.*\)<\/p>.*/\1/p' "$work/run/report.html")
    if [[ $said =~ $of_report ]]; then reported=$((reported + 1)); else echo "  $name: $said"; fi
  done
  echo "$name: trace $traced, report $reported of $runs"
  [ $((traced + reported)) -eq $((2 * runs)) ] || wrong=$((wrong + 1))
}
steps=(--max-steps 60 --print-freq 5 --trace 6:23)
convnet=(train_convnet -b 32 "${steps[@]}")
resnet=(train_resnet "$photos" -a resnet20 --train-crop-size 32 --val-resize-size 32 --val-crop-size 32 -b 4
  --no-eval --lr 0.01 "${steps[@]}")
count "slow rank" slow:rank=1,ms=20 "rank 1 is slow" "rank 1 was [0-9]+ % slower" "${convnet[@]}"
count "slow network" slownet:ms=20 "the exchange" "so the exchange bound it" "${convnet[@]}"
count "slow loader" slowdecode:ms=60 "the loader" "so the loader bound it" "${resnet[@]}"
count quiet "" none "so the computation bound it|the figures do not say" "${convnet[@]}"
[ $wrong -eq 0 ] && echo "each cause was named, and no other"
