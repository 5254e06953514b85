"""Fails unless every op has all its parts: checks, bodies, reference, tests, benchmark, a telling header.

usage: python3 tools/check_ops.py
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def problems_of(header: Path) -> list[str]:
    op, text = header.stem, header.read_text(encoding="utf-8")
    bodies = [ROOT / "kernels" / f"{op}_{kind}.cpp" for kind in ("cpu", "onednn")]
    parts = {
        "checks": (ROOT / "kernels" / f"{op}.cpp").exists(),
        "a CPU body": any(body.exists() for body in bodies),
        "a CUDA body": (ROOT / "kernels" / f"{op}_cuda.cu").exists(),
        "a reference": (ROOT / "tests" / "reference" / f"{op}.h").exists(),
        "a test": (ROOT / "tests" / "kernels" / f"{op}_test.cpp").exists(),
        "a test on CUDA": (ROOT / "tests" / "cuda" / f"{op}_test.cpp").exists(),
        "a benchmark": (ROOT / "bench" / "kernels" / f"{op}_bench.cpp").exists(),
        "a line 'Shapes:'": "Shapes:" in text,
        "a line 'Errors:'": "Errors:" in text,
    }
    return [f"kernels/{op}.h lacks {part}" for part, present in parts.items() if not present]


def main() -> int:
    candidates = sorted(h for h in (ROOT / "kernels").glob("*.h") if h.stem != "declare_op")
    headers = [h for h in candidates if "LS_DECLARE_" in h.read_text(encoding="utf-8")]
    problems = [problem for header in headers for problem in problems_of(header)]
    print("\n".join(problems) or f"{len(headers)} ops are complete")
    return 1 if problems or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
