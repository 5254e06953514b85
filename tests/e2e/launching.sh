#!/usr/bin/env bash
# usage: launching.sh BIN: ranks that are started without MPI, as the tutorials start them. They find each other through
# the environment of a launcher, by an address or by a file, and end with the same bits as under mpirun. Missing ranks,
# strangers, a busy port and contradictions are named.
set -uo pipefail
bin=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
launcher=$root/scripts/run
work=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

fail() { echo "launching.sh: $*"; tail -n 20 "$work"/*.log; exit 1; }
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
python3 "$root/tests/e2e/make_small_data.py" .  # the built-in set takes a second to evaluate
train=("$bin/train_convnet" data --epochs 5 --max-steps 20 --shards 8 --global-batch-size 64 --bn-groups 8 --threads 1)
"$launcher" -np 2 -bind-to none "${train[@]}" -o mpi > mpi.log 2>&1 || fail "mpirun"
same_bits() {
  "$bin/lockstep" diff mpi/checkpoints/last.safetensors "$1/checkpoints/last.safetensors" || fail "bits of $1"
}

# start RANK COMMAND...: starts a rank in the background; its output goes to rankRANK.log
start() {
  local rank=$1
  shift
  "$@" > "rank$rank.log" 2>&1 &
  pids[rank]=$!
}
# end CODE: waits for all ranks, which must exit with CODE
end() {
  local rank code
  for rank in "${!pids[@]}"; do
    wait "${pids[rank]}"
    code=$?
    [ $code = "$1" ] || fail "rank $rank ended with $code, expected $1"
  done
  pids=()
}
says() { grep -qF -- "$2" "rank$1.log" || fail "rank $1 does not say: $2"; }
pids=()

port=$(free_port)  # the variables that torchrun and torch.distributed.run set
for rank in 0 1; do
  start $rank env RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 \
    MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" TORCHELASTIC_RUN_ID=e2e TORCHELASTIC_USE_AGENT_STORE=True \
    "${train[@]}" -o torchrun
done
end 0
says 0 "over shm"
says 0 "0 (local 0, cpu), 1 (local 1, cpu)"
same_bits torchrun

for rank in 0 1; do  # torchrun as a task of srun
  start $rank env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 TORCHELASTIC_RUN_ID=e2e RANK=$rank WORLD_SIZE=2 \
    MASTER_PORT="$port" "$bin/lockstep" ranks
done
end 0
[ "$(grep -c '^ *[01]  *[01]  c' rank0.log)" = 2 ] || fail "lockstep ranks under torchrun in srun"

# A launcher that tells each rank its number alone
"$launcher" -np 2 -bind-to none "$(command -v env)" -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE \
  -u OMPI_COMM_WORLD_LOCAL_RANK -u OMPI_COMM_WORLD_LOCAL_SIZE "${train[@]}" -o pmix > mpi.log 2>&1 || fail "PMIx alone"
grep -qF "0 (local 0, cpu), 1 (local 1, cpu)" mpi.log || fail "local ranks of PMIx"
grep -qF "over shm" mpi.log || fail "PMIx's ranks of one host do not share memory"
same_bits pmix

for rank in 1 0; do  # two terminals; messages instead of shared memory
  start $rank env RANK=$rank WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT="$port" \
    "${train[@]}" --transport tcp -o terminals
done
end 0
says 0 "over tcp"
same_bits terminals

for rank in 0 1; do  # main.py's flags
  start $rank "${train[@]}" --dist-url "tcp://127.0.0.1:$port" --world-size 2 --rank $rank -o address
done
end 0
same_bits address

for rank in 0 1; do
  start $rank "${train[@]}" --dist-url "file://$work/meet" --world-size 2 --rank $rank -o file
done
end 0
same_bits file
[ ! -e meet ] || fail "the meeting file is still there"

for rank in 0 1; do  # plain srun
  start $rank env SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=$rank SLURM_JOB_ID=$$ SLURM_STEP_ID=0 \
    SLURM_STEP_NODELIST=localhost "${train[@]}" -o srun
done
end 0
same_bits srun

for rank in 0 1 2; do  # no port is given, so the ranks find one
  start $rank env RANK=$rank WORLD_SIZE=3 "$bin/lockstep" ranks
done
end 0
says 0 "rank  local rank  device"
[ "$(grep -c '^ *[012]  *[012]  c' rank0.log)" = 3 ] || fail "lockstep ranks"
"$bin/lockstep" ranks > rank0.log || fail "one rank"
says 0 "   0           0"

for rank in 0 1 3; do  # one of four is missing
  start $rank env RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" LOCKSTEP_RENDEZVOUS_TIMEOUT=3 \
    "${train[@]}" -o missing
done
begin=$(date +%s)
end 75
[ $(($(date +%s) - begin)) -le 10 ] || fail "a missing rank was named late"
for rank in 0 1 3; do says $rank "1 of 4 ranks did not come: rank 2"; done
says 0 "--rendezvous-timeout SECONDS waits longer"
[ ! -e missing ] || fail "a run that did not start left something"

start 0 "${train[@]}" --dist-url "tcp://127.0.0.1:$port" --world-size 2 --rank 0 -o stranger
for _ in $(seq 100); do  # a stranger connects while rank 0 waits
  { exec 3<> "/dev/tcp/127.0.0.1/$port"; } 2>/dev/null && break
  sleep 0.1
done
printf 'GET / HTTP/1.1\r\n\r\n' >&3
for _ in $(seq 100); do grep -q refused rank0.log && break; sleep 0.1; done
exec 3>&-
start 1 "${train[@]}" --dist-url "tcp://127.0.0.1:$port" --world-size 2 --rank 1 -o stranger
end 0
says 0 "note: refused a connection from 127.0.0.1:"
says 0 "it is not a rank of Lockstep"
same_bits stranger

port=$(free_port)
python3 -c "
import socket, time
s = socket.socket(); s.bind(('127.0.0.1', $port)); s.listen(); print('held', flush=True); time.sleep(60)" > holder.log &
holder=$!
for _ in $(seq 100); do grep -q held holder.log && break; sleep 0.1; done
start 0 "${train[@]}" --dist-url "tcp://127.0.0.1:$port" --world-size 2 --rank 0 -o busy
end 5
says 0 "port $port is in use by another program"
kill $holder
wait $holder 2>/dev/null
port=$(free_port)

start 0 "${train[@]}" --dist-url "tcp://127.0.0.1:$port" --world-size 2 --rank 0 -o sizes
start 1 "${train[@]}" --dist-url "tcp://127.0.0.1:$port" --world-size 4 --rank 1 -o sizes
end 2
says 0 "rank 1 at 127.0.0.1 was told 4, rank 0 was told 2"
says 1 "rank 1 at 127.0.0.1 was told 4, rank 0 was told 2"

start 0 "${train[@]}" --world-size 2 -o contradiction
end 2
says 0 "one of 2 ranks does not know its number"
start 0 "${train[@]}" --dist-url tcp://127.0.0.1:FREEPORT --world-size 2 --rank 0 -o contradiction
end 2
says 0 '"FREEPORT" is not a port'

for rank in 0 1; do  # a rank that dies ends the other, too
  start $rank env RANK=$rank WORLD_SIZE=2 MASTER_PORT="$port" LOCKSTEP_FAULT=kill:rank=1,step=7 "${train[@]}" \
    --max-steps 100000 --epochs 1000 --transport tcp -o dead
done
wait "${pids[1]}"
[ $? = 137 ] || fail "rank 1 was not killed"
unset 'pids[1]'
end 75
says 0 "rank 1 is gone"
echo "launching.sh: all is well"
