#!/usr/bin/env bash
# usage: tests/e2e/stop_signal.sh: stops scripts/run in steps that are so slow that mpirun's own signal handling would
# kill the ranks before they save. The run continues to the bits of the undisturbed run. A second signal ends it at
# once.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arguments=(-np 2 train_convnet --shards 4 --bn-groups 4 --global-batch-size 128 --max-steps 20 --no-eval)
train() { "$root/scripts/run" "${arguments[@]}" "$@"; }

train -o "$work/whole" >/dev/null 2>&1

# stopped DIR SIGNALS: starts a run with slow steps, sends it SIGTERM that many times, and prints its exit code.
stopped() {
  LOCKSTEP_FAULT=slow:rank=1,ms=400 "$root/scripts/run" "${arguments[@]}" --print-freq 1 -o "$1" \
    >"$1.log" 2>&1 &
  local run=$! code=0
  until grep -q 'Epoch: \[0\]\[ *3/' "$1.log"; do
    kill -0 $run || break  # set -e does not apply in $(...), so this would wait forever for an ended run
    sleep 0.1
  done
  for _ in $(seq "$2"); do
    kill -TERM $run
    sleep 0.2
  done
  wait $run || code=$?
  echo $code
}

[ "$(stopped "$work/cut" 1)" = 43 ]
grep -q 'all ranks save and stop' "$work/cut.log"
grep -q 'stopped on a signal after step' "$work/cut.log"
train -o "$work/cut" --resume auto >/dev/null 2>&1
last=checkpoints/last.safetensors
"$root/build/release/bin/lockstep" diff "$work/whole/$last" "$work/cut/$last"

code=$(stopped "$work/ended" 2)
[ "$code" != 0 ]
[ "$code" != 43 ]
[ -z "$(pgrep -f "$work/ended")" ]
