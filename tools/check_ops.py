"""Fails unless every op has all its parts: checks, bodies, reference, tests, benchmarks and a documented header.

An op is a function of namespace lockstep::kernels that a header of kernels/ declares to work on a stream's tensors:
by a type void(Stream&, ...), or by a prototype that takes a Stream& and tensors or a span. A header with such a
function must have all parts; every such function must be called in its tests and in the benchmarks of its family, the
folder of the header. Tests and references are named for the header or, where a header has several ops, for the op.

usage: python3 tools/check_ops.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def own_declarations(header: str) -> str:
    """The part of a header in namespace lockstep::kernels itself, not in a namespace, class or body inside it."""
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
    """Whether every set of cases in a benchmark has cases for CUDA."""
    return 0 < len(re.findall(r"\bCases \w+", bench)) == len(re.findall(r"\.cuda = \{[^}]", bench))


def names_of(op: str, header: str, others: set[str]) -> list[str]:
    """What an op's tests and reference may be named for: its header, or how its own name begins.

    Not another header: add_bias_forward has no part in what is named for add.
    """
    words = op.split("_")
    beginnings = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    return [header, *(name for name in beginnings if name not in others)]


def problems_of(root: Path, header: Path, ops: set[str], others: set[str]) -> list[str]:
    name, text = header.stem, header.read_text(encoding="utf-8")
    bodies = [header.with_name(f"{name}_{kind}.cpp") for kind in ("cpu", "onednn")]
    bench = root / "bench" / "kernels" / f"{header.parent.name}_bench.cpp"
    bench_text = bench.read_text(encoding="utf-8") if bench.exists() else ""
    has_cuda_body = header.with_name(f"{name}_cuda.cu").exists()
    tests = root / "tests"

    def each_has(folder: Path, ending: str) -> bool:
        return all(any((folder / f"{n}{ending}").exists() for n in names_of(op, name, others)) for op in ops)

    def texts_of(folder: Path, op: str, ending: str) -> list[str]:
        found = {path for n in names_of(op, name, others) for path in folder.glob(f"{n}_*{ending}")}
        return [path.read_text(encoding="utf-8") for path in sorted(found)]

    parts = {
        "checks": header.with_suffix(".cpp").exists(),
        "a CPU body": "LS_DECLARE_" not in text or any(body.exists() for body in bodies),
        "a CUDA body": has_cuda_body,
        "a reference": each_has(tests / "reference", ".h")
        and all((root / path).exists() for path in re.findall(r"tests/reference/\w+\.h", text)),
        "a test": each_has(tests / "kernels", "_test.cpp"),
        "a test on CUDA": each_has(tests / "cuda", "_test.cpp"),
        "a benchmark": bench.exists(),
        "a benchmark on CUDA": not bench.exists() or not has_cuda_body or has_cuda_cases(bench_text),
        "a line 'Shapes:'": "Shapes:" in text,
        "a line 'Errors:'": "Errors:" in text,
    }
    for op in sorted(ops):
        test_texts = [text for folder in ("kernels", "cuda") for text in texts_of(tests / folder, op, "test.cpp")]
        parts[f"a test of {op}"] = not test_texts or calls(op, test_texts)
        parts[f"a benchmark of {op}"] = not bench_text or calls(op, [bench_text])
    return [f"{header.relative_to(root)} lacks {part}" for part, present in parts.items() if not present]


def check(root: Path) -> tuple[list[str], int]:
    """Problems, and the number of ops."""
    headers = {header: ops_of(header.read_text(encoding="utf-8")) for header in (root / "kernels").rglob("*.h")}
    found = {header: ops for header, ops in sorted(headers.items()) if ops}
    stems = {header.stem for header in found}
    problems = [
        problem for header, ops in found.items() for problem in problems_of(root, header, ops, stems - {header.stem})
    ]
    return problems, sum(map(len, found.values()))


def main() -> int:
    problems, count = check(ROOT)
    print("\n".join(problems) or f"{count} ops are complete")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
