"""Fails when a file outgrows its budget: sources 500 lines, the build's CMake files 1200 together (those of
examples/ are builds of their own), lines 120 columns.

usage: python3 tools/check_size.py
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh"}
FILE_LINES, CMAKE_LINES, COLUMNS, CPP_COLUMNS = 500, 1200, 120, 100


def main() -> int:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    problems, cmake = [], 0
    for name in tracked:
        path = ROOT / name
        if path.suffix not in SOURCES and path.suffix != ".cmake" and path.name != "CMakeLists.txt":
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix not in SOURCES:
            cmake += 0 if name.startswith("examples/") else len(lines)
        elif len(lines) > FILE_LINES:
            problems.append(f"{name}: {len(lines)} lines, {FILE_LINES} allowed")
        columns = CPP_COLUMNS if path.suffix in {".h", ".cpp", ".cu", ".cuh"} else COLUMNS
        problems += [
            f"{name}:{number}: {len(line)} columns, {columns} allowed"
            for number, line in enumerate(lines, 1)
            if len(line) > columns
        ]
    if cmake > CMAKE_LINES:
        problems.append(f"CMake files: {cmake} lines together, {CMAKE_LINES} allowed")
    print("\n".join(problems) or f"{len(tracked)} files keep their budgets")
    return 1 if problems or not tracked else 0


if __name__ == "__main__":
    sys.exit(main())
