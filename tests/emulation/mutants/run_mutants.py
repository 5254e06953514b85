"""Runs every mutant in every order of threads, and compares the outcomes with the table of mutants.md.

usage: python3 run_mutants.py BIN_DIR FLAVOR | BIN_DIR --update
A flavor catches a mutant if the process fails with the words in the table's cell, in every order of threads or in as
many as the cell says ("race 2/3", "race or barrier"). "-" and "crash" require nothing. By the table, some flavor must
catch each mutant. The unmodified kernels run first and must give the right result. --update runs all flavors and adds
rows for mutants that the table lacks.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TABLE = Path(__file__).with_name("mutants.md")
FLAVORS = ("fast", "asan", "check")
ORDERS = ("forward", "reverse", "random:1")
SECONDS = 20
NOT_CAUGHT = "-"

# Words of the table -> a pattern that the process's output must match. The first match determines the outcome.
WORDS = {
    "barrier": r"__syncthreads",
    "warp operation": r"lanes of one mask|shuffle's width|its own mask|not in the mask|mask names|a warp operation:",
    "race": r"^(emulated device fault: )?race",
    "out of bounds": r"access out of bounds|heap-buffer-overflow",
    "use after free": r"freed device memory used|heap-use-after-free",
    "host memory": r"host memory used by a kernel",
    "unwritten": r"read of unwritten",
    "misaligned": r"misaligned access|misaligned address",
    "constant": r"write to __constant__ memory",
    "array bounds": r"runtime error: index -?\d+ out of bounds",
    "static bounds": r"global-buffer-overflow",
    "wrong result": r"^wrong result",
    "crash": r"AddressSanitizer:DEADLYSIGNAL",
}


def outcome(binary: Path, kernel: str, bug: str, order: str) -> str:
    """The table's word for the outcome of one run of a mutant."""
    environment = os.environ | {"LOCKSTEP_EMULATION_ORDER": order, "LOCKSTEP_NO_CUDA_CACHE": "1"}
    try:
        run = subprocess.run(
            [binary, kernel, bug], env=environment, timeout=SECONDS, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )
    except subprocess.TimeoutExpired:
        return "hang"
    if run.returncode == 0:
        return NOT_CAUGHT if run.stdout == "right result\n" else f"exit code 0 after: {run.stdout}"
    if run.returncode == 2:
        return f"exit code 2: {run.stdout}"
    for word, pattern in WORDS.items():
        if re.search(pattern, run.stdout, re.MULTILINE):
            return word
    return "crash" if run.returncode < 0 else f"exit code {run.returncode}: {run.stdout}"


def summary(outcomes: list[str]) -> str:
    """One cell: the most frequent outcome that catches the mutant, and in how many orders if not in all."""
    caught = [word for word in outcomes if word != NOT_CAUGHT]
    if not caught:
        return NOT_CAUGHT
    word = max(caught, key=caught.count)
    count = caught.count(word)
    return word if count == len(outcomes) else f"{word} {count}/{len(outcomes)}"


def satisfies(outcomes: list[str], expected: str) -> bool:
    if expected in (NOT_CAUGHT, "crash"):
        return True
    words, least = re.fullmatch(r"(.+?)(?: (\d)/\d)?", expected).groups()
    return sum(word in words.split(" or ") for word in outcomes) >= int(least or len(outcomes))


def read_table() -> dict[tuple[str, str], list[str]]:
    rows = re.findall(r"^\| (\w+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", TABLE.read_text("utf-8"), re.M)
    return {(row[0], row[1]): list(row[2:]) for row in rows if row[0] != "kernel"}


def write_table(found: dict[tuple[str, str], list[str]]) -> None:
    text = TABLE.read_text("utf-8")
    head = text[: text.index("| kernel |")]
    rows = ["| kernel | planted bug | fast | asan | check |", "|---|---|---|---|---|"]
    rows += [f"| {kernel} | {bug} | {' | '.join(cells)} |" for (kernel, bug), cells in found.items()]
    TABLE.write_text(head + "\n".join(rows) + "\n", "utf-8")


def outcomes_of(mutants: list[tuple[str, str]], binaries: dict[str, Path]) -> dict[tuple[str, str], list[list[str]]]:
    """Mutant -> for each flavor, the outcomes in all orders."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        runs = {
            mutant: [[pool.submit(outcome, binary, *mutant, order) for order in ORDERS] for binary in binaries.values()]
            for mutant in mutants
        }
        return {mutant: [[run.result() for run in orders] for orders in of] for mutant, of in runs.items()}


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[2] not in (*FLAVORS, "--update"):
        print(__doc__, file=sys.stderr)
        return 2
    flavors = FLAVORS if sys.argv[2] == "--update" else (sys.argv[2],)
    binaries = {flavor: Path(sys.argv[1]) / f"mutants_{flavor}" for flavor in flavors}
    listed = subprocess.run([binaries[flavors[0]]], check=True, capture_output=True, text=True).stdout
    mutants = [tuple(line.split(" ", 1)) for line in listed.splitlines()]
    unbroken = outcomes_of([mutant for mutant in mutants if mutant[1] == "none"], binaries)
    problems = [
        f"{kernel} without a bug, {flavor}: {cell}"
        for (kernel, _), cells in unbroken.items()
        for flavor, cell in zip(flavors, cells) if set(cell) != {NOT_CAUGHT}
    ]
    if problems or not unbroken:
        print("\n".join(problems) or "no kernels")
        return 1
    found = outcomes_of([mutant for mutant in mutants if mutant[1] != "none"], binaries)

    cells = {mutant: [summary(outcomes) for outcomes in found[mutant]] for mutant in found}
    if sys.argv[2] == "--update":
        write_table({mutant: read_table().get(mutant, row) for mutant, row in cells.items()})
    expected = read_table()
    for mutant, row in cells.items():
        print(f"{mutant[0]:18} {mutant[1]:30} {' '.join(f'{cell:20}' for cell in row)}")
        wanted = expected.get(mutant)
        if wanted is None:
            problems.append(f"{mutant}: not in {TABLE.name}")
        elif set(wanted) <= {NOT_CAUGHT, "crash"}:
            problems.append(f"{mutant}: {TABLE.name} must say who catches it")
        else:
            cell_of = dict(zip(FLAVORS, wanted))
            problems += [
                f"{mutant}, {flavor}: expected {cell_of[flavor]}, got {outcomes}"
                for flavor, outcomes in zip(flavors, found[mutant]) if not satisfies(outcomes, cell_of[flavor])
            ]
    problems += [f"{mutant}: in {TABLE.name}, but in no program" for mutant in expected if mutant not in cells]
    print("\n".join(problems) or f"{len(cells)} mutants of {len(unbroken)} kernels are as {TABLE.name} says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
