"""Fails when code compiled for a newer processor could be picked by the linker for an older one.

Each <op>_cpu.cpp is compiled for x86-64-v2, v3 and v4. An inline function or template that such a file emits
outside its level's namespace (a "weak" symbol) might replace the same function compiled for every machine.

usage: python3 tools/check_isa_symbols.py BUILD_DIR
"""

import subprocess
import sys
from pathlib import Path


def leaks_of(path: Path, level: str) -> list[str]:
    listing = subprocess.run(["nm", "-C", path], check=True, capture_output=True, text=True).stdout
    symbols = [line.split(maxsplit=2)[1:] for line in listing.splitlines() if not line.startswith(" " * 16)]
    weak = [name for kind, name in symbols if kind in "WVu"]
    return [f"{path.name} ({level}): {name}" for name in weak if f"cpu_{level}::" not in name]


def main() -> int:
    objects = {
        level: sorted(Path(sys.argv[1]).glob(f"CMakeFiles/lockstep_kernels_{level}.dir/**/*.o"))
        for level in ("v2", "v3", "v4")
    }
    leaks = [leak for level, paths in objects.items() for path in paths for leak in leaks_of(path, level)]
    count = sum(len(paths) for paths in objects.values())
    print("\n".join(leaks) or f"{count} objects keep their code to themselves")
    return 1 if leaks or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
