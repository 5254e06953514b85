"""Checks every compiled kernel against tests/cuda/resources.json, and against rules that no budget overrides.

usage: python3 tools/cuda_resources.py [--update] LIBRARY      --update: writes what was found into the budget

The budget says for each kernel and architecture: threads per block at most, registers per thread, static shared memory
per block, resident warps per SM, and how many instructions load and store 16 bytes or more in device memory. It fails
when a kernel is new, gone or worse, on the architectures that the library holds; registers are compared only if the
same toolkit compiled them. Rules for all kernels: __launch_bounds__, no stack or local memory (so no spills), no
atomics on floats. Every kernel counts as streaming, so it must keep 32 warps resident on sm_90 and move 16 bytes at a
time, unless "not_streaming" (pattern -> reason) in the budget names it.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from cubins import ROOT, CudaToolsMissing, Kernel, cuobjdump, read_kernels
from cuda_occupancy import resident_warps

BUDGET = ROOT / "tests" / "cuda" / "resources.json"
STREAMING_WARPS = 32  # on sm_90

WIDE_LOAD = re.compile(r"LDG?\..*\b(?:128|256)\b")
WIDE_STORE = re.compile(r"STG?\..*\b(?:128|256)\b")
LOCAL_MEMORY = re.compile(r"(?:LDL|STL)\b")
# Sums in shared memory, which has no float addition, become a compare-and-swap loop.
FLOAT_ATOMIC = re.compile(r"(?:ATOM|RED)[GS]?\..*\b(?:B?F(?:16|32|64)(?:x\d)?|CAS|CAST)\b")


def entry_of(kernel: Kernel) -> dict[str, int]:
    return {
        "threads": kernel.threads,
        "registers": kernel.registers,
        "shared": kernel.shared,
        "warps": resident_warps(kernel.sm, kernel.threads or 1024, kernel.registers, kernel.shared),
        "wide_loads": sum(bool(WIDE_LOAD.match(name)) for name in kernel.instructions),
        "wide_stores": sum(bool(WIDE_STORE.match(name)) for name in kernel.instructions),
    }


def key_of(kernel: Kernel) -> str:
    return f"{kernel.name} sm_{kernel.sm}"


def broken_rules(kernel: Kernel, streaming: bool) -> list[str]:
    """The problems of a kernel that no budget allows."""
    entry, found = entry_of(kernel), []
    if not kernel.instructions:
        found.append("no machine code")
    if kernel.threads == 0:
        found.append("no __launch_bounds__")
    if kernel.stack or kernel.local:
        found.append(f"{kernel.stack} bytes of stack and {kernel.local} of local memory a thread, expected none")
    if local := sorted({name for name in kernel.instructions if LOCAL_MEMORY.match(name)}):
        found.append(f"local memory is used: {', '.join(local)}")
    if atomics := sorted({name for name in kernel.instructions if FLOAT_ATOMIC.match(name)}):
        found.append(f"atomics on floats, or a compare-and-swap loop: {', '.join(atomics)}")
    if streaming and kernel.sm == 90 and entry["warps"] < STREAMING_WARPS:
        found.append(f"{entry['warps']} resident warps an SM, a streaming kernel needs {STREAMING_WARPS}")
    if streaming and entry["wide_loads"] + entry["wide_stores"] == 0:
        found.append("no access of 16 bytes, a streaming kernel needs them")
    return found


def worse_than(budget: dict[str, int], entry: dict[str, int], same_toolkit: bool) -> list[str]:
    """The ways in which a kernel exceeds its budget."""
    more = [name for name in ("registers", "shared") if entry[name] > budget[name] and same_toolkit]
    if entry["warps"] < budget["warps"]:
        more.append("warps")
    more += [name for name in ("wide_loads", "wide_stores") if budget[name] > 0 and entry[name] == 0]
    return [f"{name} {budget[name]} -> {entry[name]}" for name in more]


def gone_from(planned: dict, found: dict) -> list[str]:
    """Budgets without a kernel, of the architectures that the library was compiled for."""
    compiled = {key.rsplit(" ", 1)[1] for key in found}
    return [key for key in planned if key not in found and (not compiled or key.rsplit(" ", 1)[1] in compiled)]


def not_compiled(planned: Iterable[str], found: Iterable[str]) -> list[str]:
    """Architectures of the budget that the library lacks: an update would lose their rows."""
    return sorted({key.rsplit(" ", 1)[1] for key in planned} - {key.rsplit(" ", 1)[1] for key in found})


def is_streaming(name: str, exceptions: dict[str, str]) -> bool:
    return not any(fnmatchcase(name, pattern) for pattern in exceptions)


def problems_of(kernels: list[Kernel], toolkit: str, budget: dict) -> list[str]:
    exceptions, planned = budget["not_streaming"], budget["kernels"]
    same_toolkit = toolkit == budget["toolkit"]
    found = {key_of(kernel): kernel for kernel in kernels}
    architectures = defaultdict(list)  # (kernel, what is wrong) -> where
    for key, kernel in found.items():
        texts = broken_rules(kernel, is_streaming(kernel.name, exceptions))
        if key not in planned:
            texts.append("new, has no budget")
        elif worse := worse_than(planned[key], entry_of(kernel), same_toolkit):
            texts.append(f"worse than its budget: {', '.join(worse)}")
        for text in texts:
            architectures[kernel.name, text].append(f"sm_{kernel.sm}")
    for key in gone_from(planned, found):
        name, architecture = key.rsplit(" ", 1)
        architectures[name, "gone, but has a budget"].append(architecture)
    problems = [f"{name} {' '.join(where)}: {text}" for (name, text), where in sorted(architectures.items())]
    names = {kernel.name for kernel in kernels}
    problems += [
        f"not_streaming names no kernel: {pattern}"
        for pattern in exceptions
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    return problems


def json_of_kernels(head: dict, entries: dict[str, dict]) -> str:
    """A budget's text: the members of `head`, then one line a kernel."""
    lines = [f"    {json.dumps(key)}: {json.dumps(entry)}" for key, entry in entries.items()]
    opening = json.dumps(head, indent=2).removesuffix("\n}")
    return f'{opening},\n  "kernels": {{\n' + ",\n".join(lines) + "\n  }\n}\n"


def budget_text(kernels: list[Kernel], toolkit: str, exceptions: dict[str, str]) -> str:
    entries = {key_of(kernel): entry_of(kernel) for kernel in kernels}
    return json_of_kernels({"toolkit": toolkit, "not_streaming": exceptions}, entries)


def read_budget() -> dict:
    if not BUDGET.exists():
        return {"toolkit": "", "not_streaming": {}, "kernels": {}}
    return json.loads(BUDGET.read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", metavar="LIBRARY", type=Path)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    try:
        kernels, toolkit = read_kernels(args.library)
        ptx = re.findall(r"\.(sm_\d+)\.ptx$", cuobjdump("-lptx", str(args.library)), re.MULTILINE)
    except CudaToolsMissing as missing:
        print(f"cuda_resources: {missing}")
        return 1
    budget = read_budget()
    if args.update and (absent := not_compiled(budget["kernels"], map(key_of, kernels))):
        print(f"cuda_resources: the library lacks {', '.join(absent)}\n  try: a build for all architectures")
        return 1
    if args.update:
        BUDGET.write_text(budget_text(kernels, toolkit, budget["not_streaming"]), encoding="utf-8")
        budget = read_budget()
    problems = problems_of(kernels, toolkit, budget)
    if not ptx:
        problems.append("no PTX: a device newer than the build could not run it")
    if toolkit != budget["toolkit"]:
        print(f"registers are not compared: toolkit {toolkit}, the budget is of {budget['toolkit']}")
    print("\n".join(problems) or f"{len(kernels)} kernels, counted per architecture, keep their budgets")
    if problems:
        print(f"A change that is meant: python3 tools/cuda_resources.py --update {args.library}")
    return 1 if problems or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
