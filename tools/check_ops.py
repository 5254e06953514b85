"""Fails unless every op has all its parts: checks, bodies, reference, tests, benchmarks, a telling header.

An op is a function of namespace lockstep::kernels that a header of kernels/ declares to work on a stream's tensors:
by a type void(Stream&, ...), or by a prototype that takes a Stream& and tensors or a span. A header with such a
function must have all parts; every such function must be called in its header's tests and in the benchmarks of its
family, the folder of the header.

usage: python3 tools/check_ops.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def own_declarations(header: str) -> str:
    """What a header declares in namespace lockstep::kernels itself: in no namespace, class or body inside it."""
    text = re.sub(r"//.*", "", header).partition("namespace lockstep::kernels {")[2]
    while (outer := re.sub(r"\{[^{}]*\}", ";", text)) != text:
        text = outer
    return text


def ops_of(header: str) -> set[str]:
    """The names of the ops that a header declares."""
    text = own_declarations(header)
    types = re.findall(r"using (\w+) = void\(Stream&", text)
    declared = re.findall(r"^LS_DECLARE_\w+\(\w+, (\w+)\)", text, re.MULTILINE)
    declared += [name for kind, name in re.findall(r"^(\w+) (\w+);", text, re.MULTILINE) if kind in types]
    prototypes = re.findall(r"\bvoid (\w+)\(Stream&([^;]*)", text)
    return {*declared, *(name for name, rest in prototypes if re.search(r"\b(Tensor|span)\b", rest))}


def calls(op: str, texts: list[str]) -> bool:
    return any(re.search(rf"\b{op}\(", text) for text in texts)


def has_cuda_cases(bench: str) -> bool:
    """Whether every set of cases in a benchmark has some for CUDA."""
    return 0 < len(re.findall(r"\bCases \w+", bench)) == len(re.findall(r"\.cuda = \{[^}]", bench))


def problems_of(root: Path, header: Path, ops: set[str]) -> list[str]:
    name, text = header.stem, header.read_text(encoding="utf-8")
    bodies = [header.with_name(f"{name}_{kind}.cpp") for kind in ("cpu", "onednn")]
    bench = root / "bench" / "kernels" / f"{header.parent.name}_bench.cpp"
    bench_text = bench.read_text(encoding="utf-8") if bench.exists() else ""
    has_cuda_body = header.with_name(f"{name}_cuda.cu").exists()
    tests = [
        test.read_text(encoding="utf-8")
        for folder in ("kernels", "cuda")
        for test in (root / "tests" / folder).glob(f"{name}_*test.cpp")
    ]
    parts = {
        "checks": header.with_suffix(".cpp").exists(),
        "a CPU body": "LS_DECLARE_" not in text or any(body.exists() for body in bodies),
        "a CUDA body": has_cuda_body,
        "a reference": (root / "tests" / "reference" / f"{name}.h").exists(),
        "a test": (root / "tests" / "kernels" / f"{name}_test.cpp").exists(),
        "a test on CUDA": (root / "tests" / "cuda" / f"{name}_test.cpp").exists(),
        "a benchmark": bench.exists(),
        "a benchmark on CUDA": not bench.exists() or not has_cuda_body or has_cuda_cases(bench_text),
        "a line 'Shapes:'": "Shapes:" in text,
        "a line 'Errors:'": "Errors:" in text,
    }
    for op in sorted(ops):
        parts[f"a test of {op}"] = not tests or calls(op, tests)
        parts[f"a benchmark of {op}"] = not bench_text or calls(op, [bench_text])
    return [f"{header.relative_to(root)} lacks {part}" for part, present in parts.items() if not present]


def check(root: Path) -> tuple[list[str], int]:
    """Problems, and the number of ops."""
    headers = {header: ops_of(header.read_text(encoding="utf-8")) for header in (root / "kernels").rglob("*.h")}
    found = {header: ops for header, ops in sorted(headers.items()) if ops}
    problems = [problem for header, ops in found.items() for problem in problems_of(root, header, ops)]
    return problems, sum(map(len, found.values()))


def main() -> int:
    problems, count = check(ROOT)
    print("\n".join(problems) or f"{count} ops are complete")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
