"""Writes the tables of docs/tutorials/README.md: the 80 items of the tutorials, from tests/tutorials/items.tsv.

usage: python3 tools/tutorial_items.py

A row: number, what the tutorial asks for, state (works, needs a GPU, declined, open), tests apart by blanks, note.
Tests are named as ctest names them, or by their path where they take too long for ctest.
"""

import re
from pathlib import Path

import named_tests

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/tutorials/items.tsv"
DOCUMENT = ROOT / "docs/tutorials/README.md"
PLACE = re.compile(r"(<!-- items: (\d) -->\n).*?(<!-- /items -->)", re.DOTALL)
STATED = re.compile(r"(<!-- states -->\n).*?(\n<!-- /states -->)", re.DOTALL)
ITEMS = (25, 17, 13, 13, 12)  # of each tutorial
STATES = ("works", "needs a GPU", "declined", "open")


def rows() -> list[list[str]]:
    return named_tests.rows_of(TABLE)


def table(tutorial: str) -> str:
    lines = ["| item | the tutorial | state | tests | note |", "|---|---|---|---|---|"]
    for number, item, state, tests, note in rows():
        if number.startswith(f"{tutorial}."):
            lines.append(f"| {number} | {item} | {state} | {named_tests.code_of(tests)} | {note} |")
    return "\n".join(lines) + "\n"


def states_line() -> str:
    states = [row[2] for row in rows()]
    counts = ", ".join(f"{state}: {states.count(state)}" for state in STATES)
    return f"States of the {len(states)} items: {counts}."


def with_tables(text: str) -> str:
    text = STATED.sub(rf"\g<1>{states_line()}\g<2>", text)
    return PLACE.sub(lambda match: match[1] + table(match[2]) + match[3], text)


def outdated() -> dict[Path, str]:
    """The document if it differs from the table, with the text that it should have."""
    held = DOCUMENT.read_text(encoding="utf-8")
    expected = with_tables(held)
    return {} if held == expected else {DOCUMENT: expected}


def problems() -> list[str]:
    found = []
    wanted = [f"{tutorial}.{item}" for tutorial, count in enumerate(ITEMS) for item in range(1, count + 1)]
    numbers = [row[0] for row in rows()]
    if numbers != wanted:
        found.append(f"items: {set(wanted) ^ set(numbers) or 'not in order'}")
    for number, item, state, tests, note in rows():
        if state not in STATES:
            found.append(f"item {number}: its state is {state!r}")
        if not item or (state == "works" and not tests) or (state != "works" and not note):
            found.append(f"item {number}: one that works has tests, another says why in its note")
        found += [f"item {number}: no test is called {test}" for test in named_tests.absent(tests)]
    return [f"tests/tutorials/items.tsv: {problem}" for problem in found]


if __name__ == "__main__":
    for path, text in outdated().items():
        path.write_text(text, encoding="utf-8")
