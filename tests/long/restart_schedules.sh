#!/usr/bin/env bash
# usage: tests/long/restart_schedules.sh BIN [COUNT [SEED]]
# COUNT (200) runs of the ConvNet on 1, 2, 4 and 8 ranks in turn under scripts/run --max-restarts with --keep-in-memory.
# One to three times SIGKILL ends a random rank at a random moment, also while the ranks start. Each run ends with the
# undisturbed digest, and each restart goes on from the last complete step: only the current step is done again.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
bin=$(realpath "$1") count=${2:-200} seed=${3:-$$}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=$seed
arguments=(--shards 8 --bn-groups 8 --global-batch-size 64 --threads 1 --max-steps "${STEPS:-100}" --print-freq 1
  --no-eval --no-report --no-tensorboard)
echo "schedules of seed $seed, commit $(git -C "$root" rev-parse --short HEAD), $(date -u +%F)"

digest() { sed -n 's/^ *"digest": "\(.*\)".*/\1/p' "$1/run.json"; }
restarts_in() { grep -c '^run: .* restart [0-9]* of' "$1" || true; }
milliseconds() { sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }
# kill_one DIR: ends one of the ranks that are there.
kill_one() {
  local victims
  mapfile -t victims < <(pgrep -f "^$bin/train_convnet .* -o $1( |$)")
  [ ${#victims[@]} -gt 0 ] && kill -9 "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null
}
# Fails where a restart goes on from before the step that precedes the last one in the log. Prints the steps done twice.
steps_again() {
  awk '
    match($0, /^Epoch: \[0\]\[ *[0-9]+/) { n = substr($0, RSTART, RLENGTH); sub(/.*\[ */, "", n); last = n + 0 }
    /^run: .* restart [0-9]+ of .* from the beginning/ { if (last > 1) { print "lost", last; exit 1 } again += last }
    match($0, /goes on from step [0-9]+/) {
      n = substr($0, RSTART + 18, RLENGTH - 18) + 0
      if (n < last - 1) { print "lost", last - n; exit 1 }
      again += last > n
    }
    END { print again + 0 }' "$1"
}

"$root/scripts/run" -np 1 "$bin/train_convnet" "${arguments[@]}" -o "$work/base" >"$work/base.log" 2>&1
want=$(digest "$work/base")
[ -n "$want" ] || { echo "the undisturbed run has no digest"; exit 1; }
end() {
  echo "$i of $count schedules on 1 2 4 8 ranks, $kills restarts: $failed failed, $again unfinished steps done again"
  rm -rf "$work"
}
i=0 kills=0 again=0 failed=0
trap end EXIT
trap 'exit 1' TERM
for (( ; i < count; i++)); do
  counts=(1 2 4 8) ranks=${counts[i % 4]} planned=$((1 + RANDOM % 3)) done=0 code=0
  dir=$work/run$i log=$work/run$i.log
  timeout 120 "$root/scripts/run" -np "$ranks" --max-restarts 9 "$bin/train_convnet" "${arguments[@]}" \
    --keep-in-memory -o "$dir" >"$log" 2>&1 &
  job=$!
  while [ $done -lt $planned ]; do
    milliseconds $((100 + RANDOM % (800 + 300 * ranks)))
    until kill_one "$dir" || ! kill -0 $job 2>/dev/null; do sleep 0.01; done
    kill -0 $job 2>/dev/null || break
    done=$((done + 1))
    until [ "$(restarts_in "$log")" -ge $done ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
  done
  wait $job || code=$?
  kills=$((kills + $(restarts_in "$log")))
  if [ $code = 0 ] && [ "$(digest "$dir")" = "$want" ] && more=$(steps_again "$log"); then
    again=$((again + more))
    rm -rf "$dir" "$log"
  else
    failed=$((failed + 1))
    echo "schedule $i, $ranks ranks: exit $code, digest $(digest "$dir"), ${more:-}; $log"
    mkdir -p "${KEEP:-$work/failed}" && cp "$log" "${KEEP:-$work/failed}"
  fi
done
left=$(find /dev/shm -maxdepth 1 -name "lockstep.$(id -u).*" -newer "$work/base.log")
[ -z "$left" ] || echo "left: $left"
[ $failed = 0 ] && [ -z "$left" ]
