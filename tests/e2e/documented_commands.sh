#!/usr/bin/env bash
# usage: tests/e2e/documented_commands.sh: runs the commands of the documents, shortened. Commands for MNIST need
# LOCKSTEP_MNIST, a folder with its four files; commands for photos need LOCKSTEP_PHOTOS, a folder with ants and bees in
# train and val. Exits with 77 (skipped) if it left some out. docs/imagenet.md has a separate test.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$root/scripts" "$root/build" "$root/tools" .
# Most of a command's time would be the evaluation of all 10,000 test images.
[ -z "${LOCKSTEP_MNIST:-}" ] || python3 "$root/tests/e2e/cut_mnist.py" "$LOCKSTEP_MNIST" data 2000 500

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
left_out=0
run_commands() {  # of document $1, at least $2 commands; trainings get the flags $3
  local line background count=0 pid pids=()
  while read -r line; do
    count=$((count + 1))
    [[ $line != *"--host a:4,b:4"* ]] || continue  # needs two hosts; tests/e2e/restarts.sh tests it
    if [[ ($line == *\~/data* && ! -e data) || ($line =~ \ (runs/[a-z]+)/ && ! -e ${BASH_REMATCH[1]}) ]]; then
      left_out=$((left_out + 1))
      continue
    fi
    line=${line%% \#*}
    background=${line##*[^&]}
    line=${line% &}
    line=${line//\~\/data/data}
    line=${line//:23456/:$port}
    case $line in
      *bench_allreduce*) line+=" -e 64K" ;;
      *bench_train*) line+=" -b 1 --num-warmup-batches 1 --num-batches-per-iter 1 --num-iters 2" ;;
      *--trace*) line+=" --max-steps 18" ;;
      *" -np "*train_resnet*)  # tests/e2e/resnet_test.cpp evaluates the built-in images on as many ranks
        line+=" $3"
        [[ $line == *photos* ]] || line+=" --no-eval"
        ;;
      *train_*) line+=" $3" ;;
    esac
    echo "\$ $line"
    eval "$line $background" </dev/null
    [ -z "$background" ] || pids+=($!)
  done < <(grep -E '^(scripts/run|build/release/bin/[a-z_]+|python3 tools/[a-z_]+\.py) ' "$root/docs/$1")
  for pid in "${pids[@]}"; do
    wait "$pid" || { echo "a command of $1 in the background ended with code $?"; exit 1; }
  done
  [ $count -ge "$2" ] || { echo "$1 has $count commands, expected $2"; exit 1; }
}
run_commands running.md 20 "--max-steps 6"
run_commands reliability.md 4 "--max-steps 6"
run_commands cuda.md 2
run_commands evaluation.md 5 "--max-steps 6"
run_commands performance.md 1 "--max-steps 6"
run_commands bench_allreduce.md 3
run_commands bench_train.md 3
count=0
while read -r line; do  # commands for a GPU, which must parse without one
  code=0 count=$((count + 1))
  eval "build/release/bin/$line -b 2 --num-warmup-batches 1 --num-batches-per-iter 1 --num-iters 1" || code=$?
  [ $code = 0 ] || [ $code = 5 ] || { echo "this ended with code $code: $line"; exit 1; }
done < <(grep '^bench_train --device cuda ' "$root/docs/bench_train.md")
[ $count = 3 ] || { echo "bench_train.md has $count commands for a GPU, expected 3"; exit 1; }

if [ -n "${LOCKSTEP_PHOTOS:-}" ]; then
  for folder in train/ants train/bees val/ants val/bees; do
    count=4
    [[ $folder == train/* ]] || count=2
    mkdir -p "photos/$folder"
    find -L "$LOCKSTEP_PHOTOS/$folder" -name '*.jpg' | sort | sed -n "1,${count}p" | xargs cp -t "photos/$folder"
  done
  run_commands photos.md 4 "-b 2 --max-steps 1"
else
  left_out=$((left_out + 4))
fi

# The tutorials' commands run on small data that is made here, so none is left out.
rm -rf data photos runs
python3 "$root/tests/e2e/make_small_data.py" .
few_photos="-a resnet20 -b 4 --max-steps 1 --train-crop-size 32 --no-eval"
run_commands tutorials/000.md 4 "-b 16 --max-steps 1 --opt-level O0"
run_commands tutorials/001.md 4 "$few_photos"
run_commands tutorials/002.md 3 "--max-steps 2"
run_commands tutorials/003.md 8 "$few_photos"
run_commands tutorials/004.md 5 "--max-steps 4 --no-eval"

[ $left_out = 0 ] || { echo "left out for want of data: $left_out commands"; exit 77; }
