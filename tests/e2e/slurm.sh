#!/usr/bin/env bash
# usage: tests/e2e/slurm.sh BIN: examples/slurm/train.sbatch with stand-ins for srun and scontrol; Slurm itself is not
# there. A job that gets SIGUSR1 saves, is queued again and ends with the undisturbed run's bits; so does one that lost
# a rank. Wrong arguments and a job that is lost too often are not queued again.
set -euo pipefail
bin=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cat >"$work/bin/srun" <<'END'
#!/usr/bin/env bash
# Two tasks, as srun without PMIx starts them; the exit code is the largest one.
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

# job CODE NAME RESTARTS FLAGS...: a start of the job, which exits with CODE.
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
