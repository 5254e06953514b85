"""Writes the table of tests/cuda_audit.md, the findings of a review of the CUDA code, from tests/cuda_audit.tsv.

usage: python3 tools/cuda_audit.py

A row: its name, what was found, what holds now or `open`, the tests apart by blanks (tools/named_tests.py says how
they are named).
"""

import re
from pathlib import Path

import named_tests

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/cuda_audit.tsv"
DOCUMENT = ROOT / "tests/cuda_audit.md"
PLACE = re.compile(r"(<!-- audit -->\n).*?(<!-- /audit -->)", re.DOTALL)
ROWS = [f"{part}{number}" for part, count in (("A", 5), ("C", 10), ("D", 6)) for number in range(1, count + 1)]


def rows() -> list[list[str]]:
    return named_tests.rows_of(TABLE)


def with_table(text: str) -> str:
    lines = ["| row | found | now | tests |", "|---|---|---|---|"]
    for name, found, now, tests in rows():
        lines.append(f"| {name} | {found} | {now} | {named_tests.code_of(tests)} |")
    return PLACE.sub(lambda match: match[1] + "\n".join(lines) + "\n" + match[2], text)


def outdated() -> dict[Path, str]:
    """The document if it differs from the table, with the text that it should have."""
    held = DOCUMENT.read_text(encoding="utf-8")
    expected = with_table(held)
    return {} if held == expected else {DOCUMENT: expected}


def problems() -> list[str]:
    names = [row[0] for row in rows()]
    found = [] if names == ROWS else [f"rows: {sorted(set(ROWS) ^ set(names)) or 'not in order'}"]
    for name, fault, now, tests in rows():
        if not (fault and now and (tests or now == "open")):
            found.append(f"row {name}: what was found, and what holds now with its test, or `open`")
        found += [f"row {name}: no test is called {test}" for test in named_tests.absent(tests)]
    return [f"tests/cuda_audit.tsv: {problem}" for problem in found]


if __name__ == "__main__":
    for path, text in outdated().items():
        path.write_text(text, encoding="utf-8")
