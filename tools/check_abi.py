"""Lists what the shared library promises: its public headers and exported symbols, demangled and sorted.

usage: python3 tools/check_abi.py BUILD [--update]
Compares that list with tests/engine/symbols.txt, or writes the file with --update. Code that compilers emit where they
like (inline functions, lambdas) is left out; the tables of virtual functions stay in.
"""
import difflib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = ROOT / "tests/engine/symbols.txt"
HEADERS = ROOT / "cmake/public_headers.txt"


def exported(names: str) -> list[str]:
    """The relevant symbols in the output of nm -DC --defined-only."""
    found = set()
    for line in names.splitlines():
        kind, name = re.match(r"[0-9a-f]* *(\w) (.*)", line).groups()
        name = re.sub(r"@@?LOCKSTEP$", "", name)
        if kind in "TDBR" or (kind == "V" and re.match(r"vtable for ", name)):
            found.add(name)
    return sorted(found)


def listing(library: Path) -> list[str]:
    names = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return [f"header {name}" for name in HEADERS.read_text().split()] + exported(names)


def main(build: str, update: bool) -> int:
    now = listing(Path(build, "liblockstep.so"))
    if update:
        LISTED.write_text("\n".join(now) + "\n")
    changes = [line for line in difflib.unified_diff(LISTED.read_text().splitlines(), now, lineterm="", n=0)
               if re.match(r"[-+](?![-+])", line)]
    for line in changes:
        print(("gone: " if line[0] == "-" else "new: ") + line[1:])
    if changes:
        print(f"the library's surface differs from {LISTED.relative_to(ROOT)}\n"
              "  why: programs that were linked against it may not find what is gone or has other arguments\n"
              "  try: docs/library.md says which version such a change needs; then tools/check_abi.py BUILD --update")
        return 1
    print(f"{len(now)} public headers and exported symbols are as listed")
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if not arguments or arguments[1:] not in ([], ["--update"]):
        sys.exit(__doc__)
    sys.exit(main(arguments[0], bool(arguments[1:])))
