#!/usr/bin/env bash
# usage: tools/check_format.sh: fails when a C++ file is not formatted as .clang-format says.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.h' '*.cpp' | xargs clang-format-19 --dry-run -Werror
