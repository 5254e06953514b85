#!/usr/bin/env bash
# usage: tools/check_shell.sh
# Fails when shellcheck finds fault with a script, or hadolint with the Dockerfile.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.sh' '*.sbatch' scripts/run .ci/run | xargs shellcheck
hadolint=build/tools/bin/hadolint  # scripts/setup.sh test
if [ -x $hadolint ]; then $hadolint --no-color Dockerfile; fi
