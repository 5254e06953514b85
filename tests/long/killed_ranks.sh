#!/usr/bin/env bash
# usage: tests/long/killed_ranks.sh BIN [KILLS [SEED]]
# Kills a random rank of 2 or 3 with SIGKILL, at KILLS (200) random moments, over shared memory, TCP and MPI: one of
# eight from the start of its process on, the others from its first record on. Every second time another rank was
# paused before, so that the killed one waits for it. lockstep flight must name the killed rank and no other, except
# for ranks that mpirun then killed. A rank without a record, as in the meeting, cannot be named: then nobody else may
# be. What rank 0 printed must be the same verdict.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
bin=$(realpath "$1") kills=${2:-200} RANDOM=${3:-1}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0 early=0
declare -A named

start() {  # TRANSPORT RANKS
  local port=$((20000 + RANDOM % 9000)) rank
  local line=("$bin/train_convnet" -b 4 --epochs 3000 --save-steps 100 --threads 1 -q --transport "$1" -o "$work/run")
  rm -rf "$work/run" "$work"/log*
  if [ "$1" = mpi ]; then
    "$root/scripts/run" -np "$2" "${line[@]}" >"$work/log" 2>&1 &
    return
  fi
  for ((rank = 0; rank < $2; ++rank)); do
    RANK=$rank WORLD_SIZE=$2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      "${line[@]}" >"$work/log$rank" 2>&1 &
  done
}

pid_of() {  # RANK
  local pid
  for pid in $(pgrep -f "^$bin/train_convnet .*$work/run"); do
    if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxE "(OMPI_COMM_WORLD_)?RANK=$1"; then echo "$pid"; fi
  done
}

for ((i = 0; i < kills; ++i)); do
  transports=(shm tcp mpi)
  transport=${transports[RANDOM % 3]} ranks=$((2 + RANDOM % 2))
  victim=$((RANDOM % ranks)) other=$(((victim + 1) % ranks)) moment=$((RANDOM % 1500)) from=begin
  ((RANDOM % 8)) && from=record
  start "$transport" $ranks
  until [ -n "$(pid_of $victim)" ] && [ -n "$(pid_of $other)" ]; do sleep 0.05; done
  until [ $from = begin ] || [ -e "$work/run/flight/rank-$victim" ]; do sleep 0.05; done
  sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
  killed=$(pid_of $victim) paused=$(pid_of $other)
  if ((i % 2)); then kill -STOP "$paused"; sleep 0.2; fi
  kill -KILL "$killed"
  if ((i % 2)); then kill -CONT "$paused"; fi
  wait 2>/dev/null || true
  said=$("$bin/lockstep" flight "$work/run" 2>&1 | tail -1) || true
  live=$(sed -n 's/^ *verdict: /verdict  /p' "$work"/log* | head -1)
  others=$(grep -oE 'rank [0-9]+ [a-z]+' <<<"$said" | grep -vE "^rank $victim |waits\$" || true)
  [ "$transport" = mpi ] && others=$(grep -v crashed <<<"$others" || true)
  if [[ $said == "verdict  "*"rank $victim crashed or was killed"* && -z $others && ${live:-$said} == "$said" ]]; then
    named[$transport]=$((${named[$transport]:-0} + 1))
  elif [ -z "$live" ] && [ ! -e "$work/run/flight/rank-$victim" ] &&
    [[ $said != "verdict "* || (-z $others && $said == *"; rank $victim has no record") ]]; then
    early=$((early + 1))
  else
    wrong=$((wrong + 1))
    echo "  $i: rank $victim of $ranks, $transport, after $moment ms: $said${live:+; rank 0 said: $live}"
  fi
done
for transport in shm tcp mpi; do echo "$transport: ${named[$transport]:-0} named"; done
echo "before the record: $early without a verdict"
[ $wrong -eq 0 ] || { echo "$wrong of $kills verdicts were wrong"; exit 1; }
echo "$kills of $kills verdicts were right"
