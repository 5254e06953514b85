"""Fails where a kernel file uses what the emulator cannot run, or cannot watch as closely.

usage: python3 tools/check_cuda_rules.py
"""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))
from mutate_kernels import masked  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent

FORBIDDEN = {
    r"\bcooperative_groups\b|\bcg::": "cooperative groups: the emulator has none",
    r"\basm\b": "inline PTX: g++ cannot compile it",
    r"<<<": "launch kernels by launch() alone",
    r"\bextern\s+__shared__": "dynamic shared memory by LS_DYNAMIC_SHARED alone",
    r"\b__threadfence\w*|\bvolatile\b": "no messages between blocks of one kernel: a second kernel instead",
    r"\b__cluster_dims__|\bcluster_\w+\(": "no clusters",
    r"\b__device__\s+(?:static\s+|volatile\s+)?[\w:]+(?:<[^;()]*>)?[\s*]+\w+\s*(?:=|;|\[|\{)":
    "no __device__ variables",
    r"\bstd::(?:vector|string|map|unordered_map|set|function)\b": "no std containers beside kernels: their code is "
    "shared with host code, which the access check would then take for a kernel's",
}
CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b", re.MULTILINE)
WHAT_COUNTS = re.compile(r"namespace\s*(\w[\w:]*)?\s*\{|[{}]|\b__global__\b|\b__shared__\b")


def outside_anonymous(code: str) -> list[int]:
    """Positions of __global__ and __shared__ outside of anonymous namespaces."""
    scopes: list[bool] = []  # of each open brace: is it an anonymous namespace's
    found = []
    for match in WHAT_COUNTS.finditer(code):
        if match[0].endswith("{"):
            scopes.append(match[0] != "{" and match[1] is None)
        elif match[0] == "}":
            if scopes:
                scopes.pop()
        elif not any(scopes):
            found.append(match.start())
    return found


def problems_of(name: str, text: str) -> list[str]:
    code = masked(text)
    found = [(m.start(), reason) for pattern, reason in FORBIDDEN.items() for m in re.finditer(pattern, code)]
    found += [(m.start(), "#if: one body for nvcc and g++") for m in CONDITIONAL.finditer(text)]
    reason = "kernels into an anonymous namespace: AddressSanitizer does not fence the shared memory of others"
    found += [(place, reason) for place in outside_anonymous(code)]
    return [f"{name}:{text.count(chr(10), 0, place) + 1}: {reason}" for place, reason in sorted(found)]


def main() -> int:
    files = sorted((ROOT / "kernels").rglob("*.cu*"))
    problems = [
        problem
        for path in files
        for problem in problems_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    print("\n".join(problems) or f"{len(files)} kernel files keep the rules")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
