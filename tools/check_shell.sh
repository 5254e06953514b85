#!/usr/bin/env bash
# usage: tools/check_shell.sh: fails when shellcheck finds fault with a script.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.sh' scripts/run .ci/run | xargs shellcheck
