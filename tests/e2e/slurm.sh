#!/usr/bin/env bash
# usage: tests/e2e/slurm.sh BIN: runs examples/slurm/train.sbatch with stand-ins for srun and scontrol, without Slurm. A
# job that gets SIGUSR1 saves, is queued again and ends with the bits of the undisturbed run. The same holds for a job
# that lost a rank. Jobs with wrong arguments and jobs that are lost too often are not queued again.
set -euo pipefail
bin=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cat >"$work/bin/srun" <<'END'
#!/usr/bin/env bash
# Starts two tasks like srun without PMIx. The exit code is the largest one of the tasks.
for task in 0 1; do
  SLURM_PROCID=$task SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=$task SLURM_STEP_ID=$SLURM_RESTART_COUNT \
    SLURM_STEP_NODELIST=localhost "$@" &
  tasks+=($!)
done
[ -z "${USR1_AFTER:-}" ] || { sleep "$USR1_AFTER" && kill -USR1 "${tasks[@]}"; }
worst=0
for task in "${tasks[@]}"; do
  code=0
  wait "$task" || code=$?
  [ $code -le $worst ] || worst=$code
done
exit $worst
END
printf '#!/bin/sh\necho "$@" >>%s/requeued\n' "$work" >"$work/bin/scontrol"
chmod +x "$work/bin/"*
export PATH=$work/bin:$PATH SLURM_JOB_ID=$$

# job CODE NAME RESTARTS FLAGS...: starts the job, which must exit with CODE.
job() {
  local expected=$1 name=$2 code=0
  export SLURM_RESTART_COUNT=$3
  shift 3
  timeout 60 "$root/examples/slurm/train.sbatch" "$bin/train_convnet" --shards 4 --bn-groups 4 --threads 1 \
    --global-batch-size 64 --max-steps 40 --no-eval --no-report --no-tensorboard -o "$work/$name" "$@" \
    >"$work/log" 2>&1 || code=$?
  [ $code = "$expected" ] || { echo "slurm.sh: $name: exit $code" && cat "$work/log" && exit 1; }
}
requeued() { [ "$(grep -cx "requeue $$" "$work/requeued")" = "$1" ] || { echo "slurm.sh: not $1 times" && exit 1; }; }
same_bits() {
  "$bin/lockstep" diff "$work/whole/checkpoints/last.safetensors" "$work/$1/checkpoints/last.safetensors"
}

job 0 whole 0
USR1_AFTER=1 LOCKSTEP_FAULT=slow:rank=0,ms=100 job 0 stopped 0
grep -q 'exit code 43: the job is queued again, start 2' "$work/log"
requeued 1
job 0 stopped 1
requeued 1
same_bits stopped
LOCKSTEP_FAULT=kill:rank=1,step=12 job 0 lost 0 --save-steps 5
requeued 2
job 0 lost 1
same_bits lost
LOCKSTEP_FAULT=kill:rank=1,step=12 MAX_RESTARTS=1 job 137 often 1
grep -q 'exit code 137 after 1 restarts: it gives up' "$work/log"
job 2 wrong 0 --epoch 3
requeued 2
echo "slurm.sh: all is well"
