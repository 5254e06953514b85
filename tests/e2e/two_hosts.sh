#!/usr/bin/env bash
# usage: two_hosts.sh BIN same-bits[.tcp]|cut-off[.tcp]|stop
# Two network namespaces stand in for two hosts with two ranks each, joined by a virtual cable. mpirun starts the ranks;
# for .tcp each rank is started separately, without MPI.
#   same-bits  4 ranks on two hosts end with the same bits as 4 ranks on one
#   cut-off    the cable is pulled during training: all ranks end soon after the deadline
#   stop       SIGTERM to scripts/run stops the ranks of both hosts, and of the other one alone, at once
# Exits with 77 if namespaces are not permitted.
set -euo pipefail
bin=$1
case $2 in same-bits | cut-off | same-bits.tcp | cut-off.tcp | stop) scenario=${2%.tcp} ;; *) exit 2 ;; esac
case $2 in *.tcp) over=tcp ;; *) over=mpi ;; esac

skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "needs root"
command -v ip >/dev/null || skip "needs iproute2"

a=lockstep$$a b=lockstep$$b
work=$(mktemp -d)
clean_up() {
  ip netns del $a 2>/dev/null || true
  ip netns del $b 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
for host in $a $b; do
  ip netns add "$host" 2>/dev/null || skip "network namespaces are not permitted"
done
ip link add ls$$a netns $a type veth peer name ls$$b netns $b 2>/dev/null || skip "no virtual cables"
ip -n $a addr add 10.77.0.1/24 dev ls$$a
ip -n $b addr add 10.77.0.2/24 dev ls$$b
for end in a b; do
  ip -n lockstep$$$end link set lo up
  ip -n lockstep$$$end link set ls$$$end up
done

# A separate host has its own name and shared memory; otherwise Open MPI takes it for the other one.
cat > "$work/on_host" <<EOF
#!/bin/bash
case \$1 in 10.77.0.1) host=$a ;; 10.77.0.2) host=$b ;; *) exit 1 ;; esac
shift
exec ip netns exec \$host unshare --uts --ipc --mount /bin/sh -c "hostname \$host; mount -t tmpfs shm /dev/shm; \$*"
EOF
cat > "$work/agent" <<EOF
#!/bin/bash
exec env -i PATH="$PATH" HOME="$HOME" "$work/on_host" "\$@"
EOF
chmod +x "$work/on_host" "$work/agent"
unshare --uts --ipc --mount true 2>/dev/null || skip "namespaces for host names are not permitted"

launcher=$(cd "$(dirname "$0")/../.." && pwd)/scripts/run
run=(train_convnet --global-batch-size 64 --shards 8 --threads 1)
ranks_on=10.77.0.1:2,10.77.0.2:2
over_mpi() {  # in a subshell
  exec env OMPI_MCA_plm_rsh_agent="$work/agent" OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 \
    OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 \
    "$work/on_host" 10.77.0.1 exec "$launcher" -np 4 --host "$ranks_on" "$bin/$*"
}
# As in separate terminals: all ranks get the address of rank 0's host. Returns the exit code of the highest rank that
# failed.
over_tcp() {
  local rank pids=() code=0 each
  for rank in 0 1 2 3; do
    RANK=$rank WORLD_SIZE=4 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 \
      "$work/on_host" 10.77.0.$((1 + rank / 2)) exec "$bin/$*" &
    pids+=($!)
  done
  for each in "${pids[@]}"; do wait "$each" || code=$?; done
  return $code
}
on_two_hosts() { over_"$over" "$@"; }

if [ "$scenario" = same-bits ]; then
  export LOCKSTEP_LR=0.05  # a flag as a variable reaches the ranks of both hosts
  on_two_hosts "${run[@]}" --bn-groups 1 --max-steps 40 -o "$work/two" | tee "$work/log"
  "$launcher" -np 4 "$bin/${run[0]}" "${run[@]:1}" --bn-groups 1 --max-steps 40 --no-eval -o "$work/one"
  grep -q "over $over" "$work/log"  # ranks on two hosts share no memory
  grep -q "ranks on $b: 2 (local 0, cpu), 3 (local 1, cpu)" "$work/log"
  for host in $a $b; do
    [ "$(grep -c "\"host\": \"$host\"" "$work/two/run.json")" = 2 ] || exit 1  # two ranks on each
  done
  "$bin/lockstep" diff "$work/one/checkpoints/last.safetensors" "$work/two/checkpoints/last.safetensors"
  exit
fi

if [ "$scenario" = stop ]; then
  for ranks_on in $ranks_on 10.77.0.2:4; do
    started=$SECONDS
    on_two_hosts "${run[@]}" --epochs 1000 --print-freq 1 -o "$work/$ranks_on" > "$work/log" 2> "$work/err" &
    job=$!
    for _ in $(seq 300); do
      [ "$(grep -c Epoch: "$work/log")" -lt 3 ] || break
      sleep 0.1
    done
    # Ranks that are all elsewhere are taken to catch signals by now.
    [ "$ranks_on" != 10.77.0.2:4 ] || [ $SECONDS -ge $((started + 6)) ] || sleep $((started + 6 - SECONDS))
    begin=$(date +%s)
    kill -TERM $job
    code=0
    wait $job || code=$?
    took=$(($(date +%s) - begin))
    echo "ranks on $ranks_on: exit code $code $took s after SIGTERM"
    if [ $code != 43 ] || [ $took -gt 8 ]; then
      tail -n 20 "$work/err"
      exit 1
    fi
  done
  exit
fi

deadline=4  # most of a step of toy_net is the exchange of its 23 MB of gradients
on_two_hosts "${run[@]}" -a toy_net --print-freq 2 --epochs 1000 --stall-abort $deadline -o "$work/two" \
  > "$work/log" 2> "$work/err" &
job=$!
under_way() { grep -q 'Epoch: \[0\]\[ *4/' "$work/log"; }
ranks() { pgrep -f "^$bin/train_convnet .*$work/two"; }
for _ in $(seq 300); do
  under_way && break
  sleep 0.1
done
under_way
[ "$(ranks | wc -l)" = 4 ]
ip -n $a link set ls$$a down
start=$(date +%s)
seconds() { echo $(($(date +%s) - start)); }
while ranks >/dev/null && [ "$(seconds)" -lt 60 ]; do sleep 0.1; done
took=$(seconds)
# Otherwise mpirun would wait for its daemon on the other host until TCP gives up, which takes a quarter of an hour.
ip -n $a link set ls$$a up
code=0
wait $job || code=$?
tail -n 20 "$work/err"
echo "all ranks gone $took s after the cable was pulled, deadline $deadline s; mpirun's exit code $code"
grep -q 'bucket [01] (' "$work/err"   # the tensors that were being exchanged
[ "$took" -le $((deadline + 3)) ]  # whole seconds: the deadline, 2 s, and one for rounding
[ $code -eq 75 ]
