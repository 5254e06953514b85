#!/usr/bin/env bash
# usage: scripts/completions.sh BIN SHARE
# Writes the trainers' completions for bash below SHARE, as the programs in BIN print them. cmake --install calls it.
# Does nothing where the programs cannot run, as after a cross-compilation.
set -euo pipefail
bin=$1 folder=$2/bash-completion/completions
if ! "$bin/train_convnet" --version >/dev/null 2>&1; then
  echo "completions: $bin/train_convnet does not run here: no completions" >&2
  exit 0
fi
mkdir -p "$folder"
for program in train_convnet train_resnet; do
  "$bin/$program" --completion bash >"$folder/$program"
done
