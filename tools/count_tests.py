"""Adds up ctest's JUnit files and prints 'N passed, N failed, N skipped' as the last line.

usage: python3 tools/count_tests.py build/test-results/PRESET.xml...      exit status 1 when a test failed or none ran

A test that left GoogleTest's own report in build/PRESET/gtest/<test>.xml counts as the cases in it.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Counts = dict[str, list[str]]  # "passed", "failed" and "skipped" -> names


def outcome(case: ElementTree.Element) -> str:
    """ctest lists a test that it could not start as skipped, with the reason."""
    skipped = case.find("skipped")
    could_not_start = skipped is not None and skipped.get("message", "").startswith(("Unable to find", "Fixture"))
    if case.find("failure") is not None or could_not_start:
        return "failed"
    return "skipped" if skipped is not None or case.get("status") == "disabled" else "passed"


def outcomes_of(case: ElementTree.Element, reports: Path) -> list[tuple[str, str]]:
    """(name, outcome) of a test or, if it wrote a report, of each of its cases."""
    name, whole = case.get("name", ""), outcome(case)
    report = reports / f"{name}.xml"
    if not report.exists():
        return [(name, whole)]
    cases = [
        (f"{name} {inner.get('classname')}.{inner.get('name')}", outcome(inner))
        for inner in ElementTree.parse(report).getroot().iter("testcase")
    ]
    # A program may also fail as a whole: a sanitizer finds something at its end.
    if whole == "failed" and all(how != "failed" for _, how in cases):
        cases.append((name, "failed"))
    return cases


def counts_of(paths: list[Path]) -> Counts:
    counts: Counts = {"passed": [], "failed": [], "skipped": []}
    for path in paths:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            for name, how in outcomes_of(case, ROOT / "build" / path.stem / "gtest"):
                counts[how].append(f"{name} ({path.name})")
    return counts


def main() -> int:
    counts = counts_of([Path(name) for name in sys.argv[1:]])
    for how in ("skipped", "failed"):
        for name in counts[how]:
            print(f"{how}: {name}")
    print(", ".join(f"{len(names)} {how}" for how, names in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
