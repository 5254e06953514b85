#!/usr/bin/env bash
# usage: tests/e2e/attack_run.sh: ranks with different oneDNN instruction sets, little address space, misspelled
# variables; scripts/run with unusual options, a pager that exits early, files left by killed jobs, and a small
# /dev/shm. Each part is named after the row of the attack that found it.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run=$root/scripts/run
fail() { echo "$*" >&2; exit 1; }

train=(train_convnet --print-freq 1 --shards 2 --no-eval)
program=("$root/build/release/bin/${train[0]}" "${train[@]:1}")

# Rank 1's oneDNN generates code for an older processor.
code=0
# shellcheck disable=SC2016
"$run" -np 2 "$(command -v bash)" -c '[ $OMPI_COMM_WORLD_RANK = 0 ] || export DNNL_MAX_CPU_ISA=SSE41; exec "$@"' \
  rank "${program[@]}" --max-steps 2 -o "$work/differ" >"$work/differ.log" 2>&1 || code=$?
[ $code = 5 ] || fail "B3: exit $code"
grep -q 'ranks differ in instruction set of oneDNN' "$work/differ.log" || fail "B3: $(cat "$work/differ.log")"

# The run trains or reports too little memory. If the dynamic loader fails, the exit code is 127. Between 200 and
# 250 MiB oneDNN 2.6 may crash while it generates code, and nothing can catch that.
refused=0
for mib in 140 150 160 165 170 175 190 260; do
  code=0
  (ulimit -v $((mib << 10)) && exec "${program[@]}" --max-steps 2 -o "$work/$mib") >"$work/little.log" 2>&1 || code=$?
  case $code in
    0 | 127) ;;
    5)
      grep -q -e 'out of memory' -e 'cannot start' "$work/little.log" || fail "B5: $(cat "$work/little.log")"
      refused=$((refused + 1))
      ;;
    *) fail "B5: exit $code with $mib MiB: $(cat "$work/little.log")" ;;
  esac
done
[ $refused -gt 0 ] || fail "B5: no size was too little"

# A misspelled variable.
code=0
LOCKSTEP_EPOCH=1 "${program[@]}" -o "$work/none" 2>"$work/variable.log" || code=$?
[ $code = 2 ] || fail "B8: exit $code"
grep -q 'LOCKSTEP_EPOCHS, or unset it' "$work/variable.log"

# --mca takes the two words after it.
"$run" -np 1 --mca mpi_show_mca_params none --bind-to none /bin/true 2>"$work/mca.log" ||
  fail "B9: $(cat "$work/mca.log")"
grep -q 'mpirun -np 1 --mca mpi_show_mca_params none --bind-to none /bin/true' "$work/mca.log"

# A program that prints to a full disk must report an error.
for words in "bench_allreduce --help" "bench_loader --help" "lockstep doctor" "train_convnet --help" \
  "train_convnet --completion bash" "train_convnet --print-config"; do
  code=0
  # shellcheck disable=SC2086  # a program and its arguments
  "$root/build/release/bin/"$words >/dev/full 2>"$work/full.log" || code=$?
  [ $code = 5 ] || fail "$words > /dev/full: exit code $code"
  grep -q 'No space left on device' "$work/full.log" || fail "$words > /dev/full: $(cat "$work/full.log")"
done

# More than ten lines follow after the reader has exited.
LOCKSTEP_FAULT=slow:rank=0,ms=10 "$run" -np 2 "${train[@]}" --max-steps 40 -o "$work/paged" 2>&1 |
  head -1 >/dev/null || true
grep -q '"exit_code": 0' "$work/paged/run.json" || fail "C4: the run ended with its pager"

# What a killed job left in memory goes. The folder of a job that holds its lock stays: its processes may be
# in another PID namespace. Nothing is left elsewhere.
folder=/dev/shm/lockstep.$(id -u).$(hostname)
held=$folder.4194999.held
mkdir "$work/tmp" "$held"
exec 9<"$held"
flock -s 9
TMPDIR=$work/tmp "$run" -np 2 /bin/sleep 100 2>/dev/null &
killed=$!
until ls "$folder.$killed".*/mpi/*/pid.* >/dev/null 2>&1; do sleep 0.05; done
pkill -KILL -P "$killed" mpirun
kill -KILL "$killed"
wait "$killed" 2>/dev/null || true
for _ in $(seq 100); do  # until its ranks have ended too
  TMPDIR=$work/tmp "$run" -np 1 /bin/true 2>/dev/null
  ls -d "$folder.$killed".* >/dev/null 2>&1 || break
done
! ls -d "$folder.$killed".* 2>/dev/null || fail "C2: this is still there"
[ -e "$held" ] || fail "C2: the folder of a running job is gone"
[ -z "$(ls "$work/tmp")" ] || fail "C2: this was left: $(ls "$work/tmp")"
exec 9<&-
rmdir "$held"

# Only if this user may mount.
small() { unshare -m sh -c 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"' sh "$@"; }
small true 2>/dev/null || { echo "C5 needs root"; exit 0; }
small "$run" -np 2 "${train[@]}" --max-steps 5 -o "$work/small" >"$work/small.log" 2>&1 ||
  fail "C5: $(cat "$work/small.log")"
grep -q '/dev/shm has 1 MiB free, 2 ranks want 10: they start over TCP' "$work/small.log"
[ "$(grep -c '^---' "$work/small.log")" = 0 ] || fail "C5: $(cat "$work/small.log")"
