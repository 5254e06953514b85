"""Counts of the long tests for the measured tables: their own tables in tests/long/*.md, read back."""

import re
from pathlib import Path

FILES = ("faults.md", "restart_schedules.md", "fuzz.md")
FAULT_KINDS = ("error", "kill", "short", "late")


def table_rows(text: str) -> list[dict[str, str]]:
    """The rows of all tables in a Markdown text, each as a dict by column title."""
    rows: list[dict[str, str]] = []
    titles: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            titles = []
        elif not titles:
            titles = cells
        elif not set(line) <= set("|-"):
            rows.append(dict(zip(titles, cells, strict=True)))
    return rows


def number(cell: str) -> int:
    """The number that a cell begins with: 200 of "200 of 200, 6 minutes"."""
    return int(re.match(r"[\d,]+", cell)[0].replace(",", ""))


def count_cells(promise: str, what: str, times: int, broken: int) -> list[str]:
    return [promise, what, f"{times:,}", "", f"{broken} broke it", "0"]


def counted_promises(folder: Path) -> list[list[str]]:
    """Cells of the table of promises that hold counts, not times."""
    faults, schedules, fuzz = (table_rows((folder / name).read_text(encoding="utf-8")) for name in FILES)
    broken = sum(number(row["broke a promise"]) for row in faults)
    kills, all_faults = (
        sum(number(row[kind]) for row in faults for kind in kinds) for kinds in (("kill",), FAULT_KINDS)
    )
    schedules_run = (number(schedules[-1][column]) for column in ("schedules", "failed"))
    fuzzed = [row for row in fuzz if "corpus" in row]
    checkpoints = [row for row in fuzzed if row["target"] in ("checkpoint_record", "safetensors")]

    def tried(rows: list[dict[str, str]]) -> tuple[int, int]:
        return sum(number(row["inputs tried"]) for row in rows), sum(row["found"] != "none" for row in rows)

    return [
        count_cells("P4", "kills in a system call of a save, a resume or a start", kills, broken),
        count_cells("P5", "runs of 1 to 8 ranks with random kills and restarts", *schedules_run),
        count_cells("P6", "changed bytes of a checkpoint's record and tensors", *tried(checkpoints)),
        count_cells("P8", f"inputs of {len(fuzzed)} readers, by libFuzzer", *tried(fuzzed)),
        count_cells("P9", "system calls that fail, are cut short, late or end in a kill", all_faults, broken),
    ]
