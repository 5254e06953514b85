#!/usr/bin/env bash
# usage: tests/e2e/readme_commands.sh: runs the commands of README, trainings short and on the MNIST that
# LOCKSTEP_MNIST names; exits 77 (skipped) without.
set -euo pipefail
[ -n "${LOCKSTEP_MNIST:-}" ] || exit 77
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$root/scripts" "$root/build" .
ln -s "$LOCKSTEP_MNIST" data

count=0
while read -r line; do
  line=${line//\~\/data/data}
  [[ $line != *train_* ]] || line+=" --max-steps 20"
  echo "\$ $line"
  eval "$line" </dev/null
  count=$((count + 1))
done < <(grep -E '^(scripts/run|build/release/bin/lockstep) ' "$root/README.md")
[ $count -ge 7 ]
