#!/usr/bin/env bash
# usage: tools/capture_readme.sh: runs scripts/train.sh and puts its last lines between README.md's markers.
set -euo pipefail
cd "$(dirname "$0")/.."
captured=$(mktemp)
trap 'rm -f "$captured"' EXIT
scripts/train.sh 2>&1 | tail -n 7 >"$captured"
python3 - "$captured" <<'P'
import sys
from pathlib import Path

begin, end = "<!-- captured: tools/capture_readme.sh -->", "<!-- /captured -->"
readme = Path("README.md")
head, rest = readme.read_text(encoding="utf-8").split(begin)
lines = Path(sys.argv[1]).read_text(encoding="utf-8")
readme.write_text(f"{head}{begin}\n```\n{lines}```\n{end}{rest.split(end)[1]}", encoding="utf-8")
P
