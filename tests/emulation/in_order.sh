#!/usr/bin/env bash
# usage: tests/emulation/in_order.sh forward|reverse|random PROGRAM ARGS...
# Runs PROGRAM with the emulator's threads, and the work queued on its streams, in that order. scripts/test.sh takes the
# seed of `random` from the commit, so that each commit tries another order; LOCKSTEP_EMULATION_SEED repeats one.
set -euo pipefail
order=$1
shift
[ "$order" != random ] || order=random:${LOCKSTEP_EMULATION_SEED:-1}
case "$order" in forward) streams=eager ;; reverse) streams=lazy ;; *) streams=$order ;; esac
echo "LOCKSTEP_EMULATION_ORDER=$order"
export LOCKSTEP_EMULATION_ORDER=$order LOCKSTEP_EMULATION_STREAMS=$streams
exec "$@"
