#!/usr/bin/env bash
# usage: tests/e2e/documented_commands.sh: runs the commands of the documents, shortened. Those on MNIST need
# LOCKSTEP_MNIST, a folder with its four files; those on photos LOCKSTEP_PHOTOS, a folder with ants and bees in train
# and val. Exits 77 (skipped) when it left some out. docs/imagenet.md has a test of its own.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$root/scripts" "$root/build" "$root/tools" .
[ -z "${LOCKSTEP_MNIST:-}" ] || ln -s "$LOCKSTEP_MNIST" data

left_out=0
run_commands() {  # of document $1, at least $2; trainings with the flags $3
  local line background count=0
  while read -r line; do
    count=$((count + 1))
    if [[ ($line == *\~/data* && ! -e data) || ($line == *" runs/mine/"* && ! -e runs/mine) ]]; then
      left_out=$((left_out + 1))
      continue
    fi
    line=${line%% \#*}
    background=${line##*[^&]}
    line=${line% &}
    line=${line//\~\/data/data}
    case $line in
      *bench_allreduce*) line+=" -e 64K" ;;
      *bench_train*) line+=" -b 2 --num-warmup-batches 1 --num-batches-per-iter 1 --num-iters 2" ;;
      *train_*) line+=" $3" ;;
    esac
    echo "\$ $line"
    eval "$line $background" </dev/null
  done < <(grep -E '^(scripts/run|build/release/bin/[a-z_]+|python3 tools/[a-z_]+\.py) ' "$root/docs/$1")
  [ $count -ge "$2" ] || { echo "$1 has $count commands, expected $2"; exit 1; }
}
run_commands running.md 12 "--max-steps 20"
run_commands evaluation.md 4 "--max-steps 20"
run_commands bench_allreduce.md 4
run_commands bench_train.md 3

if [ -n "${LOCKSTEP_PHOTOS:-}" ]; then
  for folder in train/ants train/bees val/ants val/bees; do
    mkdir -p "photos/$folder"
    find -L "$LOCKSTEP_PHOTOS/$folder" -name '*.jpg' | sort | sed -n 1,4p | xargs cp -t "photos/$folder"
  done
  run_commands photos.md 4 "-b 4 --max-steps 1"
else
  left_out=$((left_out + 4))
fi
[ $left_out = 0 ] || { echo "left out for want of data: $left_out commands"; exit 77; }
