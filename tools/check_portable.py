"""Fails if code that only x86-64 compiles is outside of an #if for it, which would break other processors.

usage: python3 tools/check_portable.py

Searches sources for intrinsics, their headers, target attributes and assembler, and build files for x86's options. The
portable path itself is compiled in tests/kernels/portable_test.cpp, and by tests/long/aarch64.sh.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = re.compile(r".*\.(h|cpp|cuh|cu)")
BUILD_FILE = re.compile(r".*\.cmake|(.*/)?CMakeLists\.txt|CMakePresets\.json")
ONLY_X86 = re.compile(
    r"\b_mm\d*_\w+|\b__m(?:64|128|256|512)[di]?\b|\b\w*mmintrin\.h|\bx86intrin\.h|\bcpuid\.h"
    r"|\b__builtin_(?:ia32|cpu)_\w+|\b__rdtscp?\b|\b__cpuid\w*|\bgnu::target\b|\btarget_clones\b|\b(?:__)?asm(?:__)?\b"
)
OPTION = re.compile(r"-m(?:arch=|avx|sse|fma|f16c|prefer-vector)[\w=.-]*")
GUARD = re.compile(r"#\s*(?:el)?if(?:def\s+|\s+(?:defined\(?\s*)?)(?:__x86_64__|__aarch64__|LS_ISA == [34])")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|(?<!include )"(?:\\.|[^"\\\n])*"', re.DOTALL)


def unguarded(text: str) -> str:
    """The text with the code that only some processors compile replaced by blank lines; #else is for all others."""
    lines, guarded = [], []
    for line in text.splitlines():
        directive = re.match(r"\s*#\s*(if|elif|else|endif)", line)
        kind = directive[1] if directive else ""
        if kind == "endif" and guarded:
            guarded.pop()
        elif kind == "if":
            guarded.append(bool(GUARD.match(line.strip())))
        elif kind in ("elif", "else") and guarded:
            guarded[-1] = bool(GUARD.match(line.strip()))
        lines.append("" if any(guarded) else line)
    return "\n".join(lines)


def problems_of(name: str, text: str) -> list[str]:
    if SOURCE.fullmatch(name):
        code = COMMENT_OR_TEXT.sub(lambda match: "\n" * match[0].count("\n"), text)
        found, what = ONLY_X86.finditer(code := unguarded(code)), "stands outside #if defined(__x86_64__)"
    elif BUILD_FILE.fullmatch(name) and name != "cmake/LockstepTargets.cmake":
        found, what, code = OPTION.finditer(text), "is for x86-64: cmake/LockstepTargets.cmake has these options", text
    else:
        return []
    return [f"{name}:{code.count(chr(10), 0, match.start()) + 1}: {match[0]} {what}" for match in found]


def main() -> int:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    names = [name for name in tracked if SOURCE.fullmatch(name) or BUILD_FILE.fullmatch(name)]
    problems = [problem for name in names for problem in problems_of(name, (ROOT / name).read_text(encoding="utf-8"))]
    print("\n".join(problems) or f"{len(names)} files are for all processors")
    return 1 if problems or not names else 0


if __name__ == "__main__":
    sys.exit(main())
