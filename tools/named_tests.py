"""Checks that a test named in a document exists, by its ctest name, or by its path if it is too long for ctest."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFINED = re.compile(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
SCRIPTS = re.compile(r"foreach\(script ([\w./\s]+)\)")
ADDED = re.compile(r"add_test\(NAME ([\w.${}-]+)|lockstep_mpi_test\(([\w.${}-]+)")
VARIABLE = re.compile(r"\$\{\w+\}")
LOOPED = re.compile(r"foreach\((\w+) ([^)$]+)\)")


def expanded(name: str, loops: dict[str, list[str]]) -> list[str]:
    """The names that CMake's loops make from a name with variables; none if it has other variables."""
    variable = VARIABLE.search(name)
    if variable is None:
        return [name]
    values = loops.get(variable[0][2:-1], [])
    return [one for value in values for one in expanded(name.replace(variable[0], value), loops)]


def entries_of(cmake: str) -> set[str]:
    """The names of tests that a CMakeLists.txt adds to ctest."""
    loops: dict[str, list[str]] = {}
    for variable, values in LOOPED.findall(cmake):
        loops.setdefault(variable, []).extend(values.split())
    names = {f"e2e.{Path(script).stem}" for match in SCRIPTS.findall(cmake) for script in match.split()}
    for added, with_ranks in ADDED.findall(cmake):
        names.update(expanded(added or f"ranks.{with_ranks}", loops))
    return names


@cache
def all_names() -> frozenset[str]:
    names: set[str] = set()
    for path in (ROOT / "tests").rglob("*_test.c*"):
        names.update(f"{suite}.{name}" for suite, name in DEFINED.findall(path.read_text(encoding="utf-8")))
    for path in (ROOT / "tests").rglob("CMakeLists.txt"):
        names.update(entries_of(path.read_text(encoding="utf-8")))
    return frozenset(names)


def rows_of(table: Path) -> list[list[str]]:
    """The rows of a tab-separated table with a heading."""
    return [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()[1:]]


def code_of(tests: str) -> str:
    """Formats names separated by blanks as a table cell."""
    return "<br>".join(f"`{test}`" for test in tests.split())


def absent(tests: str) -> list[str]:
    return [test for test in tests.split() if not exists(test)]


def exists(name: str) -> bool:
    return (ROOT / name).is_file() if "/" in name else name in all_names()
