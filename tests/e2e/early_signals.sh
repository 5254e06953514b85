#!/usr/bin/env bash
# usage: tests/e2e/early_signals.sh training|starting: signals to scripts/run (tests/attacks.md). training: SIGUSR1,
# also twice. starting: SIGTERM and SIGUSR1 while mpirun and the ranks start. No signal may be lost.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# start NAME: begins a run of two ranks that would train for minutes.
start() {
  "$root/scripts/run" -np 2 train_convnet --shards 4 --bn-groups 4 --global-batch-size 64 --max-steps 100000 \
    --epochs 1000 -o "$work/$1" >"$work/$1.log" 2>&1 &
  run=$!
}

# expect_saved NAME: the run has stopped and has left a checkpoint if it had begun.
expect_saved() {
  local code=0
  timeout 60 tail --pid="$run" -f /dev/null
  wait "$run" || code=$?
  [ $code = 43 ] || { echo "$1: exit $code" && cat "$work/$1.log" && exit 1; }
  if grep -q 'before the ranks were started' "$work/$1.log"; then return; fi
  grep -q 'stopped on a signal after step' "$work/$1.log"
  [ -e "$work/$1/checkpoints/last.safetensors" ]
}

training() {
  start user
  until grep -q 'Epoch: \[0\]' "$work/user.log"; do sleep 0.05; done
  kill -USR1 "$run"
  sleep 0.05
  kill -USR1 "$run" 2>/dev/null || true
  expect_saved user
}

# Waits until the shell of scripts/run has installed its traps, since SIGTERM would kill it before. Until its exec it is
# a copy of this shell.
wait_for_traps() {
  local caught=0
  until grep -q scripts/run "/proc/$run/cmdline"; do :; done
  until ((0x$caught >> 9 & 1)); do
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$run/status")
  done
}

starting() {
  local signal ms code
  while read -r signal ms; do
    start "$signal$ms"
    wait_for_traps
    sleep "0.$ms"
    kill -"$signal" "$run"
    expect_saved "$signal$ms"
  done <<<$'TERM 000\nTERM 015\nTERM 040\nTERM 070\nTERM 150\nUSR1 015\nUSR1 070'
  for ms in 002 005 008 011 014 017 020 023 026 029 032 035 080; do  # before mpirun starts, and while it does
    "$root/scripts/run" -np 1 /bin/sleep 0.1 >"$work/line.log" 2>&1 &
    run=$! code=0
    wait_for_traps
    sleep "0.$ms"
    kill -TERM "$run"
    wait "$run" || code=$?
    [[ $code =~ ^(0|43|143)$ ]] || { echo "$ms ms: exit $code" && cat "$work/line.log" && exit 1; }
  done
}

"$1"
