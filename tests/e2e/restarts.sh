#!/usr/bin/env bash
# usage: tests/e2e/restarts.sh BIN: scripts/run --max-restarts. A job that loses a rank continues and ends with the bits
# of the undisturbed run, with fewer ranks if --elastic allows it, and with more once their host answers. It gives up
# after the given number of restarts. It does not restart after a user's stop or for wrong arguments.
set -euo pipefail
bin=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bits=(--shards 4 --bn-groups 4 --global-batch-size 64 --threads 1 --no-eval --no-report --no-tensorboard --print-freq 1)

fail() { echo "restarts.sh: $*" && cat "$work/$name.log" && exit 1; }
# run NAME OPTIONS... -- FLAGS...: trains in $work/NAME; sets code.
run() {
  name=$1 code=0
  local options=()
  shift
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  timeout 60 "$root/scripts/run" "${options[@]}" "$bin/train_convnet" "${bits[@]}" -o "$work/$name" "$@" \
    >"$work/$name.log" 2>&1 || code=$?
}
expect_code() { [ $code = "$1" ] || fail "$name: exit $code"; }
says() { [ "$(grep -c -- "$2" "$work/$name.log")" = "$1" ] || fail "$name: not $1 times: $2"; }
same_bits() {
  local last=checkpoints/last.safetensors
  "$bin/lockstep" diff "$work/whole/$last" "$work/$name/$last" || fail bits
}
# when NAME TEXT SIGNAL PATTERN: once the log of NAME contains TEXT, sends SIGNAL to the oldest process of that run
# whose command line matches PATTERN.
when() {
  for _ in $(seq 3000); do
    if grep -q -- "$2" "$work/$1.log" 2>/dev/null; then break; fi
    sleep 0.02
  done
  grep -q -- "$2" "$work/$1.log" || fail "$1 never said: $2"
  pkill "-$3" -o -f -- "$4.* $work/$1( |$)"
}

run whole -np 2 -- --max-steps 40
expect_code 0

when killed 'Epoch: \[0\]\[ *12/' KILL "^$bin/train_convnet" &
LOCKSTEP_FAULT=slow:rank=0,ms=20 run killed -np 2 --max-restarts 3 -- --max-steps 40 --save-steps 5
wait $!
expect_code 0
says 1 'run: rank [01] on .* was lost (signal 9, Killed): restart 1 of 3 goes on from step [15][05]* with 2 ranks$'
same_bits

# No step is lost, and no state remains in memory, neither of this job nor of a job that has ended.
left=/dev/shm/lockstep.$(id -u).$(hostname).4194999.1
mkdir "$left"
(
  when kept 'Epoch: \[0\]\[ *9/' 0 "^$bin/train_convnet"  # another scripts/run takes no state that is locked
  for state in "/dev/shm/lockstep.$(id -u).$(hostname)."*/step*; do
    flock -n -x "${state%/*}" touch "$work/unlocked" || true
  done
  when kept 'Epoch: \[0\]\[ *12/' KILL "^$bin/train_convnet"
) &
LOCKSTEP_FAULT=slow:rank=0,ms=20 run kept -np 2 --max-restarts 3 -- --max-steps 40 --keep-in-memory
wait $!
expect_code 0
steps=$(sed -n '/restart 1 of 3 goes on/q; s/^Epoch: \[0\]\[ *\([0-9]*\).*/\1/p' "$work/kept.log" | tail -n 1)
from=$(sed -n 's/.*restart 1 of 3 goes on from step \([0-9]*\) with 2 ranks$/\1/p' "$work/kept.log")
if [ -z "$steps" ] || [ -z "$from" ]; then fail "no steps before the restart, or no word of it"; fi  # empty is 0
[ $((steps - from)) -le 1 ] || fail "$steps steps were taken before it went on from $from"
says 1 "=> loaded checkpoint '/dev/shm/"
memory=$(sed -n "s/^=> loaded checkpoint '\(.*\)\/step.*/\1/p" "$work/kept.log")
[ -n "$memory" ] || fail "it does not say which state in memory it took up"
if [ -e "$memory" ] || [ -e "$left" ]; then fail "$memory or $left is still there"; fi
[ ! -e "$work/unlocked" ] || fail "a running job's state was not locked"
same_bits
code=0
"$bin/train_convnet" --keep-in-memory -o "$work/alone" 2>"$work/kept.log" || code=$?
expect_code 2
says 1 'nothing would use the state'

# Jobs that start in one second get directories of their own; names are read as the program prints them.
(
  cd "$work"
  . "$root/scripts/restart.sh"
  config=$'# arch = \'convnet\'\noutput-dir = "a\\u000ab\\"c" # flag' ranks=1 taken=()
  [ "$(setting output-dir)" = $'a\nb"c' ]
  for _ in 1 2 3; do claim_directory && taken+=("$dir"); done
  [ "$(printf '%s\n' "${taken[@]}" | sort -u | wc -l)" = 3 ] && rmdir "${taken[@]}"
) || fail "directories of jobs that start at once"

# Rank 1 never gets past its twelfth step.
export LOCKSTEP_FAULT=kill:rank=1,step=12
run lost -np 2 --max-restarts 1 -- --max-steps 40 --save-steps 4
expect_code 137
says 1 'run: rank 1 .*: restart 1 of 1 goes on from step [48] with 2 ranks$'
says 1 'run: rank 1 on .* was lost (signal 9, Killed); it gives up: 1 of 1 restarts are used$'
printf '\tlocalhost\t# mpirun counts its cores\n' >"$work/hosts"
run listed -np 2 -machinefile "$work/hosts" --max-restarts 1 -- --max-steps 40 --save-steps 4
expect_code 137
says 1 'restart 1 of 1 goes on from step [48] with 2 ranks$'
says 2 "mpirun -np 2 --hostfile $work/hosts"
run unnumbered --max-restarts 1 -- --max-steps 4
expect_code 2
says 1 'max-restarts wants the number of ranks'
run fewer --max-restarts 3 --elastic 1:2 -- --max-steps 40
expect_code 0
says 1 ': restart 2 of 3 goes on from the beginning with 1 rank$'
same_bits
unset LOCKSTEP_FAULT

when stopped 'Epoch: \[0\]\[ *9/' USR1 "^bash .*scripts/run" &
LOCKSTEP_FAULT=slow:rank=0,ms=20 run stopped -np 2 --max-restarts 3 -- --max-steps 4000
wait $!
expect_code 43
says 0 'run: .* restart'

run wrong -np 2 --max-restarts 3 -- --max-step 4
expect_code 2
says 1 'unknown flag --max-step'
says 0 'run: .* restart'
bits=("${bits[@]:2}")
run open --max-restarts 3 --elastic 1:2 -- --max-steps 4
expect_code 2
says 1 'elastic wants --shards'
bits=(--shards 4 "${bits[@]}")

# A host that answers only after the first steps. Both hosts are this machine.
cat >"$work/agent" <<'END'
#!/bin/sh
[ -e "$(dirname "$0")/answers" ] || exit 255
shift
exec sh -c "$*"
END
chmod +x "$work/agent"
(when more 'Epoch: \[0\]\[ *5/' 0 "^$bin/train_convnet" && touch "$work/answers") &
RUN_PROBE_S=0.2 OMPI_MCA_plm_rsh_agent=$work/agent LOCKSTEP_FAULT=slow:rank=0,ms=100 \
  run more --max-restarts 0 --elastic 1:2 --host localhost:1,elsewhere:1 -- --max-steps 40
wait $!
expect_code 0
says 1 'run: there is room for more ranks: the job goes on from step [0-9]* with 2 ranks$'
same_bits
# An mpirun that waits forever for a rank that was killed while it started.
mkdir "$work/path"
cat >"$work/path/mpirun" <<END
#!/bin/sh
rm "\$0"
true &
exec sleep 100
END
chmod +x "$work/path/mpirun"
PATH=$work/path:$PATH run hung -np 2 --max-restarts 1 -- --max-steps 40
expect_code 0
says 1 'run: a rank was lost (exit code 137): restart 1 of 1 goes on from the beginning with 2 ranks$'
same_bits
echo "restarts.sh: all is well"
