"""Prints how long the parts of a build and its tests took, beside the budgets in CONTRIBUTING.md and earlier runs.

usage: python3 tools/minutes.py MINUTES.tsv [CTEST_OUTPUT]       exit status 1 if a part is far over its budget
       python3 tools/minutes.py --keep             adds the last run to tests/ci_runs.tsv, which is committed

MINUTES.tsv has a line "part<tab>seconds" for each part (scripts/part.sh); a part that ran twice counts twice. Its line
"speed<tab>1.2" is the machine's (scripts/machine_speed.sh): budgets are minutes at speed 1, so minutes are multiplied
by the slowest speed that was measured. A part fails above 1.5 times its budget.
CTEST_OUTPUT is what ctest printed: its summary gives each label's time, divided here by the two tests that run at once.
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET_ROW = re.compile(r"^\| `([^`]+)` \| ([\d.]+) \|", re.MULTILINE)
LABEL_ROW = re.compile(r"^([\w-]+) += +([\d.]+) sec\*proc", re.MULTILINE)
TESTS_AT_ONCE = 2
FAILS_ABOVE = 1.5  # times the budget
SPEED = "speed"
LAST_RUN = ROOT / "build" / "test-results" / "run.tsv"
KEPT_RUNS, KEPT = ROOT / "tests" / "ci_runs.tsv", 10
COLUMNS = ["date", "commit", "processor", "speed"]
COLUMNS += ["release: build", "release: tests", "asan-ubsan: build", "tsan: build", "all"]


def seconds_of(text: str) -> list[tuple[str, float]]:
    return [(part, float(seconds)) for part, seconds in (line.split("\t") for line in text.splitlines())]


def speed_of(text: str) -> float:
    """The slowest speed that was measured; 1 if none was."""
    return min((value for part, value in seconds_of(text) if part == SPEED), default=1.0)


def minutes_of_parts(text: str) -> dict[str, float]:
    """Part -> minutes, in the order in which the parts ran."""
    minutes: dict[str, float] = {}
    for part, seconds in seconds_of(text):
        if part != SPEED:
            minutes[part] = minutes.get(part, 0) + seconds / 60
    return minutes


def minutes_of_labels(ctest_output: str) -> dict[str, float]:
    return {
        f"label {label}": float(seconds) / TESTS_AT_ONCE / 60 for label, seconds in LABEL_ROW.findall(ctest_output)
    }


def budgets_of(contributing: str) -> dict[str, float]:
    return {part: float(minutes) for part, minutes in BUDGET_ROW.findall(contributing)}


def over_budget(minutes: dict[str, float], budgets: dict[str, float], speed: float, times: float) -> list[str]:
    return [part for part, taken in minutes.items() if part in budgets and taken * speed > times * budgets[part]]


def table(minutes: dict[str, float], budgets: dict[str, float], speed: float) -> str:
    lines = [f"{'part':28} minutes  at speed 1  budget"]
    for part, taken in minutes.items():
        budget = f"{budgets[part]:7.1f}" if part in budgets else f"{'-':>7}"
        lines.append(f"{part:28} {taken:7.1f} {taken * speed:11.1f} {budget}")
    lines.append(f"speed of this machine: {speed:.2f}")
    lines.append(f"over budget: {', '.join(over_budget(minutes, budgets, speed, 1)) or 'nothing'}")
    if failed := over_budget(minutes, budgets, speed, FAILS_ABOVE):
        lines.append(f"failed: over {FAILS_ABOVE} times the budget: {', '.join(failed)}")
    return "\n".join(lines)


def run_row(minutes: dict[str, float], speed: float) -> str:
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    model = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    values = {"date": datetime.date.today().isoformat(), "commit": commit or "-", "speed": f"{speed:.2f}"}
    values |= {"processor": model[1] if model else "-"}
    values |= {part: f"{taken:.1f}" for part, taken in minutes.items()}
    return "\t".join(values.get(column, "-") for column in COLUMNS)


def with_run(kept: str, row: str) -> str:
    """The committed table with one more run, and without what is older than the last ten."""
    rows = [line for line in kept.splitlines()[1:] if line != row] + [row]
    return "\n".join(["\t".join(COLUMNS), *rows[-KEPT:]]) + "\n"


def main() -> int:
    kept = KEPT_RUNS.read_text("utf-8") if KEPT_RUNS.exists() else ""
    if sys.argv[1:] == ["--keep"]:
        KEPT_RUNS.write_text(with_run(kept, LAST_RUN.read_text("utf-8").rstrip("\n")), "utf-8")
        return 0
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    outputs = [Path(name) for name in sys.argv[2:] if Path(name).exists()]
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    parts, speed = minutes_of_parts(text), speed_of(text)
    labels = minutes_of_labels("".join(path.read_text(encoding="utf-8", errors="replace") for path in outputs))
    minutes = parts | labels | {"all": sum(parts.values())}
    budgets = budgets_of((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    row = run_row(minutes, speed)
    LAST_RUN.parent.mkdir(parents=True, exist_ok=True)
    LAST_RUN.write_text(row + "\n", "utf-8")
    print(f"earlier runs and this one, minutes:\n{with_run(kept, row).expandtabs(19)}")
    print(table(minutes, budgets, speed))
    return 1 if over_budget(minutes, budgets, speed, FAILS_ABOVE) else 0


if __name__ == "__main__":
    sys.exit(main())
