#!/usr/bin/env bash
# usage: tests/long/ranks_on_one_gpu.sh PROGRAM [ARGS...]
# Ranks that share a GPU: ConvNet's training with gradients over CUDA IPC on 2 and 4 ranks holds the bits of one
# rank and of ranks that exchange through the host, and is timed beside them; a rank that is killed ends the job.
# PROGRAM: build/release/bin/train_convnet, or train_convnet_emulated with ARGS that make it short.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
lockstep=$(dirname "$1")/lockstep
CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*}  # else ranks would take a GPU each
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arguments=(--device cuda --global-batch-size 64 --shards 4 --bn-groups 4 --max-steps 200 --no-graph "${@:2}")

train() {  # NAME RANKS ARGS...
  local name=$1 ranks=$2
  shift 2
  "$root/bench/on_ranks.sh" "$ranks" "$1" "${arguments[@]}" --output-dir "$work/$name" "${@:2}" \
    >"$work/$name.log" 2>&1 ||
    { cat "$work/$name.log" >&2; return 1; }
  echo "$name: $(grep -o '[0-9.,]* images/s' "$work/$name.log" | tail -1)"
}
compare() {  # NAME
  "$lockstep" diff "$work"/{one,"$1"}/checkpoints/last.safetensors
}

train one 1 "$1"
for ranks in 2 4; do
  for transport in ipc shm; do
    train "$transport-$ranks" "$ranks" "$1" --transport "$transport"
    compare "$transport-$ranks"
  done
done
grep -q 'over CUDA IPC' "$work/ipc-2.log"

begin=$SECONDS
if LOCKSTEP_FAULT=kill:rank=1,step=5 train killed 2 "$1" --transport ipc 2>"$work/killed.err"; then
  echo "a run went on without its rank 1" >&2
  exit 1
fi
echo "one GPU: the same bits on 1, 2 and 4 ranks over CUDA IPC and through the host;" \
  "without rank 1 the job ended after $((SECONDS - begin)) s"
