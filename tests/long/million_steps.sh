#!/usr/bin/env bash
# usage: million_steps.sh [BIN [STEPS]]
# A run of STEPS (1,000,000) steps of one image that logs every tenth: from a tenth of the steps on its memory grows by
# no more than 2 %, and by 16 MiB while it writes report.html, which stays under 2 MB.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${1:-$root/build/release/bin} steps=${2:-1000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# glibc gives each thread memory of its own, half a MiB, when it first takes some. A loader's second worker may do so
# late; that is no growth by steps.
export MALLOC_ARENA_MAX=1
"$bin/train_convnet" --dummy -b 1 --threads 1 --epochs 1000000 --no-eval --max-steps "$steps" \
  --save-freq 1000000 --histograms $((steps / 50)) -p 10 -q -o "$work/run" >"$work/log" 2>&1 &
training=$!
early=0 training_peak=0 peak=0 before=0  # before: of the last look, which was in training if this one is
while resident=$(awk '/^VmRSS/ {print $2}' "/proc/$training/status" 2>/dev/null) && [ -n "$resident" ]; do
  step=$({ tail -n 1 "$work/run/metrics.jsonl" 2>/dev/null || true; } | sed -n 's/.*"step":\([0-9]*\).*/\1/p')
  if [ $((${step:-0} * 10)) -lt "$steps" ]; then
    early=$resident
  else
    [ "$resident" -le "$peak" ] || peak=$resident
    [ "$before" -le "$training_peak" ] || [ $((step + 10)) -ge "$steps" ] || training_peak=$before
    before=$resident
  fi
  sleep 0.1
done
wait "$training" || { cat "$work/log"; exit 1; }
report=$(stat -c %s "$work/run/report.html") log=$(stat -c %s "$work/run/metrics.jsonl")
echo "$steps steps: $early KiB resident after a tenth of them, at most $training_peak KiB in training and $peak KiB" \
  "to the end; metrics.jsonl $log bytes, report.html $report bytes"
for seen in "$early" "$training_peak"; do
  [ "$seen" -gt 0 ] || { echo "nobody saw how much memory a step takes"; exit 1; }
done
[ $((training_peak * 50)) -le $((early * 51)) ] || { echo "memory grew by more than 2 %"; exit 1; }
[ $((peak - early)) -le 16384 ] || { echo "the end took more than 16 MiB"; exit 1; }
[ "$report" -lt 2000000 ] || { echo "the report is too large"; exit 1; }
echo "memory is bounded"
