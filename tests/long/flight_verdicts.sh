#!/usr/bin/env bash
# usage: tests/long/flight_verdicts.sh BIN PHOTOS [RUNS]
# Plants each of six culprits in rank 1 of 3 ranks RUNS (10) times, and a slow disk beneath a save of rank 0. Lets twice
# as many runs go undisturbed, and looks at half of them while they run. Counts how often lockstep flight names the
# culprit, or nobody. PHOTOS has ants and bees in train and val. BIN has slow_fsync.so, which the tests' build makes.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
bin=$(realpath "$1") photos=$2 runs=${3:-10}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0 all=0

train() {  # FAULT PROGRAM ARGS...
  rm -rf "$work/run"
  LOCKSTEP_FAULT=$1 "$root/scripts/run" -np 3 "$bin/$2" "${@:3}" --threads 1 -q -o "$work/run" >"$work/log" 2>&1
}
verdict() { "$bin/lockstep" flight "$work/run" | tail -1; }

count() {  # NAME FAULT VERDICT PROGRAM ARGS...
  local named=0 said
  for ((i = 0; i < runs; ++i)); do
    if train "$2" "${@:4}"; then echo "  $1: the run did not fail"; fi
    said=$(verdict)
    if [[ $said == "verdict  $3"* && $said != *"rank 0 is"* && $said != *"rank 2 is"* ]]; then
      named=$((named + 1))
    else
      echo "  $1: $said"
    fi
  done
  echo "$1: $named of $runs"
  all=$((all + named)) wrong=$((wrong + runs - named))
}

convnet=(train_convnet -b 32 --max-steps 60 --no-eval --stall-abort 2)
resnet=(train_resnet "$photos" -a resnet20 --train-crop-size 32 --val-resize-size 32 --val-crop-size 32 -b 4 --no-eval
  --lr 0.01 --max-steps 10 --stall-abort 2 -j 1)
count "stopped rank" stop:rank=1,step=7 "rank 1 is stopped by a signal" "${convnet[@]}"
count "slow disk" slowdisk:ms=60000,rank=1 "rank 1 waits for its loader, whose thread 0 reads a photo" "${resnet[@]}"
count "slow decode" slowdecode:ms=60000,rank=1 "rank 1 waits for its loader, whose thread 0 decodes" "${resnet[@]}"
count "kernel loop" loop:rank=1,step=7,layer=layer2.0 "rank 1 is in forward, layer layer2.0" "${convnet[@]}"
count "lost message" lost:rank=1,step=7 "a message was lost, or the transport hangs: all ranks" "${convnet[@]}"
count "skipped call" skip:rank=1,step=7 "rank 1 skipped a collective call" "${convnet[@]}"

quiet=0
for ((i = 0; i < runs; ++i)); do
  train "" "${convnet[@]}" || { cat "$work/log"; exit 1; }
  said=$(verdict)
  if [[ $said == "no verdict: the run ended by itself" ]]; then quiet=$((quiet + 1)); else echo "  quiet: $said"; fi
done
for ((i = 0; i < runs; ++i)); do
  train "" train_convnet -b 32 --max-steps 150 --no-eval &
  until [ -L "$work/run/flight/rank-2" ]; do sleep 0.05; done
  sleep 0.$((2 + i % 7))
  said=$(verdict)
  if [[ $said == "no verdict: "* ]]; then quiet=$((quiet + 1)); else echo "  running: $said"; fi
  wait $!
done
echo "quiet runs without a verdict: $quiet of $((2 * runs))"

saves=0
for ((i = 0; i < runs; ++i)); do
  rm -rf "$work/run"
  LD_PRELOAD=$bin/slow_fsync.so SLOW_FSYNC_MS=1200 "$root/scripts/run" -np 3 "$bin/train_convnet" --threads 1 -q \
    --no-eval --max-steps 4 -o "$work/run" >"$work/log" 2>&1 &
  said="no verdict: not yet"
  until [[ $said == "verdict"* ]] || ! kill -0 $! 2>/dev/null; do
    sleep 0.3
    said=$("$bin/lockstep" flight "$work/run" 2>/dev/null | tail -1) || said=none
  done
  wait $!
  if [[ $said == "verdict  rank 0 is still "*": a slow disk"* ]]; then
    saves=$((saves + 1))
  else
    echo "  save: $said"
  fi
done
echo "slow save: $saves of $runs"
all=$((all + saves)) wrong=$((wrong + runs - saves))
[ $wrong -eq 0 ] && [ $quiet -eq $((2 * runs)) ] || exit 1
echo "$all of $((7 * runs)) culprits were named, and no other rank"
