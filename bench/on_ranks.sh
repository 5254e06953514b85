#!/usr/bin/env bash
# usage: bench/on_ranks.sh N PROGRAM ARGS...
# N ranks on this host without MPI: a process each, which meet as torchrun's do. Rank 0 writes to standard output, the
# others to standard error. Exit status of the lowest rank that failed.
set -uo pipefail
ranks=$1
shift
[ "$ranks" -gt 1 ] || exec "$@"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
pids=()
trap 'kill "${pids[@]}" 2>/dev/null' TERM INT
for ((rank = 0; rank < ranks; rank++)); do
  if [ $rank = 0 ]; then
    RANK=0 LOCAL_RANK=0 "$@" &
  else
    RANK=$rank LOCAL_RANK=$rank "$@" >&2 &
  fi
  pids+=($!)
done
status=0
for ((rank = ranks - 1; rank >= 0; rank--)); do
  wait "${pids[rank]}" || status=$?
done
exit $status
