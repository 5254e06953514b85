#!/usr/bin/env bash
# usage: scripts/flag_pages.sh BIN SHARE
# Writes the trainers' completions for bash, zsh and fish and their manual pages below SHARE, as the programs in BIN
# print them. cmake --install calls it. Does nothing where the programs cannot run, as after a cross-compilation.
set -euo pipefail
bin=$1 share=$2
if ! "$bin/train_convnet" --version >/dev/null 2>&1; then
  echo "flag_pages: $bin/train_convnet does not run here: no completions, no manual pages" >&2
  exit 0
fi
bash=$share/bash-completion/completions zsh=$share/zsh/site-functions fish=$share/fish/vendor_completions.d
mkdir -p "$bash" "$zsh" "$fish" "$share/man/man1"
for program in train_convnet train_resnet; do
  "$bin/$program" --completion bash >"$bash/$program"
  "$bin/$program" --completion zsh >"$zsh/_$program"
  "$bin/$program" --completion fish >"$fish/$program.fish"
  "$bin/$program" --man >"$share/man/man1/$program.1"
done
