#!/usr/bin/env bash
# usage: tests/e2e/readme_commands.sh: runs the commands of README, trainings short and on the MNIST that
# LOCKSTEP_MNIST names; exits 77 (skipped) without. Those of docs/photos.md where LOCKSTEP_PHOTOS names photos
# in train and val: some of them, one step.
set -euo pipefail
[ -n "${LOCKSTEP_MNIST:-}" ] || exit 77
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$root/scripts" "$root/build" .
ln -s "$LOCKSTEP_MNIST" data

count=0
run_commands() {  # of file $1, trainings with $2
  while read -r line; do
    line=${line//\~\/data/data}
    [[ $line != *train_* ]] || line+=" $2"
    echo "\$ $line"
    eval "$line" </dev/null
    count=$((count + 1))
  done < <(grep -E '^(scripts/run|build/release/bin/[a-z_]+) ' "$1")
}
run_commands "$root/README.md" "--max-steps 20"
[ $count -ge 7 ]

[ -n "${LOCKSTEP_PHOTOS:-}" ] || exit 0
for folder in train/ants train/bees val/ants val/bees; do
  mkdir -p "photos/$folder"
  find -L "$LOCKSTEP_PHOTOS/$folder" -name '*.jpg' | sort | sed -n 1,4p | xargs cp -t "photos/$folder"
done
count=0
run_commands "$root/docs/photos.md" "-b 4 --max-steps 1"
[ $count -eq 4 ]
