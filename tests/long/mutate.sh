#!/usr/bin/env bash
# usage: tests/long/mutate.sh [--tries N] [--seed N] [--only PART_OF_NAME]
# Changes one comparison, index, barrier or stride of the CUDA kernels at random, 60 times, and sees whether the
# emulated tests notice (tools/mutate_kernels.py). Works in a copy of HEAD; writes tests/long/mutations.md.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$work/tree"; rm -rf "$work"' EXIT

git -C "$root" worktree add --quiet --detach "$work/tree" HEAD
cd "$work/tree"
cmake --preset release > "$work/configure.log"
nice python3 tools/mutate_kernels.py --report "$root/tests/long/mutations.md" "$@"
