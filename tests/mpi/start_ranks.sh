#!/usr/bin/env bash
# start_ranks.sh TRANSPORT RANKS COMMAND...: starts COMMAND as ranks, by mpirun, or for tcp each one separately. The tcp
# ranks find each other through the environment. They end as under mpirun: with the exit code of the rank that failed
# first, after the others were killed.
set -uo pipefail
transport=$1 ranks=$2
shift 2
[[ $transport == tcp* ]] || exec mpirun -np "$ranks" "$@"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
pids=()
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$@" &
  pids+=($!)
done
code=0
for ((left = ranks; left > 0; --left)); do
  wait -n
  code=$?
  [ $code -eq 0 ] || break
done
[ $code -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
wait
exit $code
