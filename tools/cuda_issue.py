"""Checks the instructions that each compiled kernel issues per byte it moves against tests/cuda/issue.json.

usage: python3 tools/cuda_issue.py [--update] LIBRARY      --update: writes what was found into the budget

An SM issues four instructions a clock, one for each of its schedulers. A kernel that is to run at the speed of memory
may need only a part of them: beside half of them, loads wait for their turn. Issue use is that part at a card's
bandwidth, of the instructions in the kernel's main loop:

    instructions / bytes * bandwidth / (SMs * 4 schedulers * 32 threads * clock)

The main loop is the innermost one whose iteration moves most bytes of device memory a thread; a kernel without such a
loop counts as a whole. Where branches give it several paths, the one with most instructions counts. Subroutines, such
as divisions of 64 bits, count as one call, inner loops without accesses as one turn, and all accesses as moved, in
caches or not.
The budget says for each kernel and architecture instructions and bytes per thread, and the use. It fails when a kernel
is new, gone, or issues more than its budget (if the same toolkit compiled it), and when a kernel is above the limit
without a reason: one in "reasons" (pattern -> reason), or in "not_streaming" of tests/cuda/resources.json.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cubins import MEMBER, ROOT, SASS_FUNCTION, TOOLKIT, CudaToolsMissing, cuobjdump, demangled, functions_in
from cuda_resources import json_of_kernels

BUDGET = ROOT / "tests" / "cuda" / "issue.json"
RESOURCES = ROOT / "tests" / "cuda" / "resources.json"
SCHEDULERS, WARP = 4, 32  # of an SM; threads
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(@!?\w+\s+)?([A-Z][\w.]*)([^;]*)")
TARGET = re.compile(r"(?:`\(\S+\)|0x([0-9a-f]+))\s*$")
ACCESS = re.compile(r"(?:LDG?|STG?|LDGSTS)\.")  # of device memory; LDS, LDL and LDC are others
WIDTHS = (("256", 32), ("128", 16), ("64", 8), ("16", 2), ("8", 1))


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str
    target: int | None = None  # of a branch
    goes_on: bool = True  # to the next one, in some thread


@dataclass(frozen=True)
class MainLoop:
    """The instructions of a thread: an iteration of the main loop, or the whole kernel if it has no loop."""

    instructions: int
    bytes: int


def bytes_of(name: str) -> int:
    """The bytes that one thread moves: "LDG.E.128.CONSTANT" 16 bytes, "STG.E.U16" 2, "LDG.E" 4."""
    if not ACCESS.match(name):
        return 0
    parts = [part.lstrip("US") for part in name.split(".")[1:]]
    return next((count for width, count in WIDTHS if width in parts), 4)


def parsed(line: str) -> Instruction | None:
    match = INSTRUCTION.match(line)
    if match is None:
        return None
    address, predicate, name, rest = match.groups()
    target = TARGET.search(rest) if name.startswith("BRA") else None
    is_end = name.partition(".")[0] in ("BRA", "EXIT", "RET", "BRX", "JMP")
    # "BRA P1, 0x20" and "BRA.U !UP0, 0x20" depend on their operand.
    always = predicate is None and "P" not in rest.partition("0x")[0].replace("UPT", "").replace("PT", "")
    return Instruction(int(address, 16), name, int(target[1], 16) if target else None, not (is_end and always))


def longest_path(code: list[Instruction], is_loop: bool) -> MainLoop:
    """The path from a loop's first instruction to its last, or to the kernel's end. Ties: the one that moves more."""
    reached: dict[int, tuple[int, int]] = {}  # address -> instructions and bytes from there on
    for at in range(len(code) - 1, -1, -1):
        here = code[at]
        ends = at == len(code) - 1 if is_loop else not here.goes_on and here.target is None
        ways = [(0, 0)] if ends else []
        if here.goes_on and at + 1 < len(code) and code[at + 1].address in reached:
            ways.append(reached[code[at + 1].address])
        if here.target in reached:
            ways.append(reached[here.target])
        if ways:
            count, moved = max(ways)
            reached[here.address] = (count + 1, moved + bytes_of(here.name))
    return MainLoop(*reached.get(code[0].address, (0, 0)))


def main_loop(code: list[Instruction]) -> MainLoop:
    spans = {(i.target, i.address) for i in code if i.target is not None and i.target < i.address}
    inner = [
        (first, last)
        for first, last in spans
        if not any(first <= f and l <= last and (f, l) != (first, last) for f, l in spans)
    ]
    bodies = [[i for i in code if first <= i.address <= last] for first, last in inner]
    moving = [loop for body in bodies if (loop := longest_path(body, is_loop=True)).bytes > 0]
    if not moving:
        return longest_path(code, is_loop=False)
    return max(moving, key=lambda loop: (loop.bytes, -loop.instructions))


def issue_use(loop: MainLoop, card: dict) -> float:
    """The share of a card's issue slots that the loop takes at the card's bandwidth; 0 if nothing is moved."""
    if loop.bytes == 0:
        return 0.0
    slots = card["sms"] * SCHEDULERS * WARP * card["clock_hz"]
    return round(loop.instructions / loop.bytes * card["bytes_per_s"] / slots, 3)


def read_loops(library: Path, sms: list[int]) -> tuple[dict[tuple[str, int], MainLoop], str]:
    """(kernel's name, architecture) -> main loop, and the version of the toolkit. Raises CudaToolsMissing."""
    codes: dict[tuple[str, int, str], list[Instruction]] = {}
    for sm in sms:
        listing = cuobjdump("-sass", "-arch", f"sm_{sm}", str(library))
        for member, _, symbol, line in functions_in(listing, SASS_FUNCTION):
            if (instruction := parsed(line)) is not None:
                codes.setdefault((member, sm, symbol), []).append(instruction)
    names = demangled({symbol for _, _, symbol in codes})
    loops = {(f"{member}: {names[symbol]}", sm): main_loop(code) for (member, sm, symbol), code in codes.items()}
    return loops, toolkit_of(library)


def toolkit_of(library: Path) -> str:
    """The version of the toolkit that made the sm_90 cubins, which every supported toolkit can make."""
    return ", ".join(sorted(set(TOOLKIT.findall(cuobjdump("-elf", "-arch", "sm_90", str(library))))))


def entry_of(loop: MainLoop, card: dict) -> dict:
    return {"instructions": loop.instructions, "bytes": loop.bytes, "issue": issue_use(loop, card)}


def entries_of(loops: dict[tuple[str, int], MainLoop], cards: dict) -> dict[str, dict]:
    return {f"{name} sm_{sm}": entry_of(loop, cards[str(sm)]) for (name, sm), loop in sorted(loops.items())}


def problems_of(found: dict[str, dict], budget: dict, not_streaming: dict[str, str], same_toolkit: bool) -> list[str]:
    planned, limit = budget["kernels"], budget["limit"]
    problems, above = [], set()
    for key, entry in found.items():
        name = key.rsplit(" ", 1)[0]
        if key not in planned:
            problems.append(f"{key}: new, has no budget")
        elif same_toolkit and entry["issue"] > planned[key]["issue"]:
            problems.append(f"{key}: issue use {planned[key]['issue']} -> {entry['issue']}")
        if entry["issue"] <= limit or any(fnmatchcase(name, pattern) for pattern in not_streaming):
            continue
        reasons = [pattern for pattern in budget["reasons"] if fnmatchcase(name, pattern)]
        above.update(reasons)
        if not reasons:
            use = f"issue use {entry['issue']} at the card's bandwidth"
            problems.append(f"{key}: {use}, at most {limit} without a reason")
    problems += [f"{key}: gone, but has a budget" for key in planned.keys() - found.keys()]
    problems += [f"reasons name no kernel above {limit}: {pattern}" for pattern in budget["reasons"].keys() - above]
    return sorted(problems)


def budget_text(found: dict[str, dict], toolkit: str, budget: dict) -> str:
    kept = {name: budget[name] for name in ("cards", "limit", "reasons")}
    return json_of_kernels({"toolkit": toolkit, **kept}, found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", metavar="LIBRARY", type=Path)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    budget = json.loads(BUDGET.read_text(encoding="utf-8"))
    try:
        loops, toolkit = read_loops(args.library, sorted(map(int, budget["cards"])))
    except CudaToolsMissing as missing:
        print(f"cuda_issue: {missing}")
        return 1
    found = entries_of(loops, budget["cards"])
    if args.update:
        BUDGET.write_text(budget_text(found, toolkit, budget), encoding="utf-8")
        budget = json.loads(BUDGET.read_text(encoding="utf-8"))
    not_streaming = json.loads(RESOURCES.read_text(encoding="utf-8"))["not_streaming"]
    same_toolkit = toolkit == budget["toolkit"]
    problems = problems_of(found, budget, not_streaming, same_toolkit)
    if not same_toolkit:
        print(f"budgets are not compared: toolkit {toolkit}, they are of {budget['toolkit']}")
    print("\n".join(problems) or f"{len(found)} kernels, counted per architecture, keep their issue budgets")
    if problems:
        print(f"A change that is meant: python3 tools/cuda_issue.py --update {args.library}")
    return 1 if problems or not found else 0


if __name__ == "__main__":
    sys.exit(main())
