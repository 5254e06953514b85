#!/usr/bin/env bash
# usage: tests/long/kill_resume.sh PROGRAM ARGS...
# Kills one rank of a run with SIGKILL at KILLS (10) random moments and lets it go on with --resume auto, on 4, 2 and
# 1 ranks in turn; a run that ends before is begun again. Each that ends holds the undisturbed run's bits.
# ARGS fix the batch, shards and groups and where the run ends:
#   kill_resume.sh build/release/bin/train_convnet --global-batch-size 64 --shards 4 --bn-groups 2 --max-steps 400
# SAVE_STEPS (10): steps between checkpoints. SEED: of the moments. BASE: artifacts of an undisturbed run of ARGS, as
# same_bits.sh keeps them. Without it one is trained on 4 ranks first.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
program=$1
shift
lockstep=$(dirname "$program")/lockstep
kills=${KILLS:-10}
rank_counts=(4 2 1)
RANDOM=${SEED:-$$}
echo "moments of seed ${SEED:-$$}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

train() {  # RANKS DIR: replaces this shell by mpirun's parent
  exec "$root/scripts/run" -np "$1" "$program" "${arguments[@]}" -o "$2" >> "$2.log" 2>&1
}
milliseconds_of() { sed -n 's/^ *"wall_s": \([0-9]*\)\.\([0-9]\).*/\1\200/p' "$1/run.json"; }
digest() { sed -n 's/^ *"digest": "\(.*\)".*/\1/p' "$1/run.json"; }

arguments=("$@")
base=${BASE:-$work/base}
[ -n "${BASE:-}" ] || (train 4 "$base")
duration=$(milliseconds_of "$base")
[ -n "$(digest "$base")" ] || { echo "the undisturbed run has no digest"; exit 1; }
echo "undisturbed: $((duration / 1000)) s, digest $(digest "$base")"

compare() {  # DIR
  local last
  last=$(readlink "$base/checkpoints/last.safetensors")
  for file in "$last" "${last%.safetensors}.state.safetensors" best.safetensors; do
    "$lockstep" diff "$base/checkpoints/$file" "$1/checkpoints/$file"
  done
  [ "$(digest "$1")" = "$(digest "$base")" ]
}

arguments=("$@" --save-steps "${SAVE_STEPS:-10}" --resume auto)
killed=0 starts=0 ended=0 unfinished=no
until [ $killed -ge "$kills" ] && [ $unfinished = no ]; do
  dir=$work/killed$ended
  ranks=${rank_counts[starts % 3]}
  starts=$((starts + 1)) unfinished=yes
  (train "$ranks" "$dir") &
  job=$! was_killed=no
  if [ $killed -lt "$kills" ]; then
    pause=$((300 + (RANDOM * 32768 + RANDOM) % (1000 + duration / 3)))
    sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
    mapfile -t victims < <(ps -o pid= --ppid "$(pgrep -P $job mpirun)")
    if [ ${#victims[@]} -gt 0 ] && kill -9 "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null; then
      killed=$((killed + 1)) was_killed=yes
      echo "kill $killed: a rank of $ranks after $pause ms"
    fi
  fi
  if wait $job; then
    compare "$dir"
    ended=$((ended + 1)) unfinished=no
  elif [ $was_killed = no ]; then
    tail "$dir.log"
    echo "a start on $ranks ranks failed though nothing was killed"
    exit 1
  fi
  [ $starts -lt $((10 * kills)) ] || { tail "$dir.log"; echo "it does not end"; exit 1; }
done
grep -h '^=> loaded\|skipped a checkpoint' "$work"/killed*.log | sed 's/.*(epoch/  went on from (epoch/' || true
echo "killed $killed times in $starts starts on ${rank_counts[*]} ranks: $ended runs hold the undisturbed one's bits"
