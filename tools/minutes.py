"""Prints how long the parts of a build and its tests took, beside the budgets in CONTRIBUTING.md.

usage: python3 tools/minutes.py MINUTES.tsv [CTEST_OUTPUT]

MINUTES.tsv has a line "part<tab>seconds" for each part (scripts/part.sh); a part that ran twice counts twice.
CTEST_OUTPUT is what ctest printed: its summary gives each label's time, divided here by the two tests that run at once.
A part over its budget is named; nothing fails.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET_ROW = re.compile(r"^\| `([^`]+)` \| ([\d.]+) \|", re.MULTILINE)
LABEL_ROW = re.compile(r"^([\w-]+) += +([\d.]+) sec\*proc", re.MULTILINE)
TESTS_AT_ONCE = 2


def minutes_of_parts(text: str) -> dict[str, float]:
    """Part -> minutes, in the order in which the parts ran."""
    minutes: dict[str, float] = {}
    for line in text.splitlines():
        part, seconds = line.split("\t")
        minutes[part] = minutes.get(part, 0) + float(seconds) / 60
    return minutes


def minutes_of_labels(ctest_output: str) -> dict[str, float]:
    return {
        f"label {label}": float(seconds) / TESTS_AT_ONCE / 60 for label, seconds in LABEL_ROW.findall(ctest_output)
    }


def budgets_of(contributing: str) -> dict[str, float]:
    return {part: float(minutes) for part, minutes in BUDGET_ROW.findall(contributing)}


def table(parts: dict[str, float], labels: dict[str, float], budgets: dict[str, float]) -> str:
    rows = {**parts, **labels, "all": sum(parts.values())}
    lines = [f"{'part':28} minutes  budget"]
    for part, minutes in rows.items():
        budget = f"{budgets[part]:7.1f}" if part in budgets else f"{'-':>7}"
        lines.append(f"{part:28} {minutes:7.1f} {budget}")
    over = [part for part, minutes in rows.items() if part in budgets and minutes > budgets[part]]
    lines.append(f"over budget: {', '.join(over) or 'nothing'}")
    return "\n".join(lines)


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    outputs = [Path(name) for name in sys.argv[2:] if Path(name).exists()]
    labels = minutes_of_labels("".join(path.read_text(encoding="utf-8", errors="replace") for path in outputs))
    budgets = budgets_of((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    print(table(minutes_of_parts(Path(sys.argv[1]).read_text(encoding="utf-8")), labels, budgets))
    return 0


if __name__ == "__main__":
    sys.exit(main())
