"""Changes one comparison, index, barrier or stride of the CUDA kernels at a time and checks that a test fails.

usage: python3 tools/mutate_kernels.py --report FILE [--tries N] [--seed N] [--only PART_OF_NAME]

Works in the tree that it lies in, whose kernels it changes and restores: tests/long/mutate.sh makes a copy first.
Requires: build/release configured. Each change is built and run in the flavors fast, check and asan, in three orders,
until something fails. Changes that do not compile or have no effect are not counted. FILE gets a table of all tries
and the survivors.
Exit status 0 when all tries were made, whatever they found.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/release"
FLAVORS = ("fast", "check", "asan")
ORDERS = {"forward": "eager", "reverse": "lazy", "random:1": "random:1"}  # threads -> queued work

KINDS = ("comparison", "index", "barrier", "stride")
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
TERM = r"[\w.\[\]()]+(?: \* [\w.\[\]()]+)*"
LESSER = re.compile(rf"({TERM}) (<=|>=|<|>) ({TERM}) \? \1 : \3(?![\w.\[(])")
LENGTH = (
    r"(?:\w*(?:count|stride|width|height|row|column|channel|thread|block|size|length)s?|k[A-Z]\w*"
    r"|(?:grid|block)Dim\.\w)"
)
IGNORED = re.compile(
    r'//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:\\\n|[^\n])*|^[ \t]*template <[^\n]*'
    r"|static_assert\([^;]*;",
    re.MULTILINE,
)
DECLARATION = re.compile(
    r"^\s*(?:(?:const|static|constexpr|__shared__)\s+)*(?!return\b)[\w:<>, ]*[\w>][*&]*\s+\w+(?:\[[^\[\]]*\])*$"
)


@dataclass(frozen=True)
class Mutation:
    file: Path
    kind: str
    begin: int
    end: int
    new: str

    def applied(self, text: str) -> str:
        return text[: self.begin] + self.new + text[self.end :]

    def line(self, text: str) -> int:
        return text.count("\n", 0, self.begin) + 1


def masked(text: str) -> str:
    """The text with comments, literals, directives and template heads blanked out, of the same length."""
    return IGNORED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def indexes(code: str) -> Iterator[tuple[int, int, str]]:
    for match in re.finditer(r"(?<=[\w)\]])\[([^\[\]]+)\]", code):
        before = code[code.rfind("\n", 0, match.start()) + 1 : match.start()]
        if not DECLARATION.match(before) and before.strip() != "":
            yield match.start(1), match.end(1), f"({match[1]}) + 1" if " " in match[1] else f"{match[1]} + 1"
    for match in re.finditer(r"\b(?:load|store)\w*(?:<[^;()]*?>)?\([\w.>-]+ \+ ([\w.]+)", code):
        yield match.start(1), match.end(1), f"({match[1]} + 1)"


def strides(code: str) -> Iterator[tuple[int, int, str]]:
    for match in re.finditer(r"; (?:\+\+(\w+)|(\w+) ([+*]|/|>>|<<)= ([^;()]+|[^;]*?\)))\)", code):
        if match[1]:
            yield match.start(1) - 2, match.end(1), f"{match[1]} += 2"
        else:
            yield match.start(4), match.end(4), f"({match[4]}) * 2" if match[3] in "+" else f"{match[4]} * 2"
    for match in re.finditer(rf" \* ({LENGTH})\b(?![(.:])", code):
        yield match.start(1), match.end(1), f"({match[1]} + 1)"


def mutations_of(file: Path, text: str) -> list[Mutation]:
    code = masked(text)
    found = [
        Mutation(file, "comparison", match.start(1), match.end(1), COMPARISONS[match[1]])
        for match in re.finditer(r" (<=|>=|==|!=|<|>) ", code)
    ]
    found += [Mutation(file, "index", *place) for place in indexes(code)]
    found += [
        Mutation(file, "barrier", match.start(), match.end(), ";")
        for match in re.finditer(r"\b__sync(?:threads|warp)\([^;]*\);", code)
    ]
    return found + [Mutation(file, "stride", *place) for place in strides(code)]


def has_no_effect(mutation: Mutation, text: str) -> bool:
    """a < b ? a : b equals a <= b ? a : b, because both give the same result if a == b."""
    return any(match.start(2) == mutation.begin for match in LESSER.finditer(masked(text)))


def drawn(mutations: list[Mutation], seed: int) -> Iterator[Mutation]:
    """All mutants in random order, with each kind equally often until it is used up."""
    chooser = random.Random(seed)
    rest = {kind: [m for m in mutations if m.kind == kind] for kind in KINDS}
    while any(rest.values()):
        some = rest[chooser.choice([kind for kind in KINDS if rest[kind]])]
        yield some.pop(chooser.randrange(len(some)))


def tests_of(file: Path) -> str:
    """A gtest filter for the tests of the ops whose headers the kernels include; all tests for a .cuh."""
    if file.suffix == ".cuh":
        return "*"
    headers = set(re.findall(r'"(kernels/\w+/\w+\.h)"', file.read_text("utf-8")))
    suites = set()
    for test in (ROOT / "tests/cuda").glob("*_test.cpp"):
        text = test.read_text("utf-8")
        if headers & set(re.findall(r'"(kernels/\w+/\w+\.h)"', text)):
            suites |= set(re.findall(r"^TEST(?:_\w)?\((\w+),", text, re.MULTILINE))
    return ":".join(f"*{suite}*" for suite in sorted(suites)) or "*"


def build(flavor: str) -> bool:
    command = ["cmake", "--build", BUILD, "--target", f"test_cuda_{flavor}"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def run(flavor: str, order: str, tests: str, seconds: float) -> str:
    """A short description of the failure; empty when the tests pass."""
    environment = os.environ | {
        "LOCKSTEP_EMULATION_ORDER": order,
        "LOCKSTEP_EMULATION_STREAMS": ORDERS[order],
        "LOCKSTEP_NO_CUDA_CACHE": "1",
        "GTEST_BRIEF": "1",
        "GTEST_FAIL_FAST": "1",
    }
    command = [BUILD / f"bin/test_cuda_{flavor}", f"--gtest_filter={tests}"]
    try:
        done = subprocess.run(
            command, env=environment, timeout=seconds, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )
    except subprocess.TimeoutExpired:
        return "hang"
    if done.returncode == 0:
        return ""
    if fault := re.search(r"emulated device fault: ([^:,\n]+)", done.stdout):
        return fault[1]
    if report := re.search(r"AddressSanitizer: ([\w-]+)|runtime error: (.{0,40})", done.stdout):
        return report[1] or report[2]
    return f"signal {-done.returncode}" if done.returncode < 0 else "test fails"


def caught_by(mutation: Mutation, text: str, seconds: dict[str, float]) -> str | None:
    """The check that noticed the mutant; empty if it survived, None if it does not compile. Restores the file."""
    tests = tests_of(mutation.file)
    mutation.file.write_text(mutation.applied(text), "utf-8")
    try:
        if not build("fast"):
            return None
        for chosen in [tests] if tests == "*" else [tests, "*"]:
            for flavor in FLAVORS:
                if not build(flavor):
                    return f"{flavor}: does not compile"
                for order in ORDERS:
                    if problem := run(flavor, order, chosen, seconds[flavor]):
                        return f"{flavor}, {order}: {problem}"
        return ""
    finally:
        mutation.file.write_text(text, "utf-8")


def unbroken() -> dict[str, float]:
    """The timeout of a flavor's tests, from their present time. Errors: SystemExit if they fail."""
    seconds = {}
    for flavor in FLAVORS:
        if not build(flavor):
            sys.exit(f"mutate_kernels: test_cuda_{flavor} does not build")
        start = time.monotonic()
        for order in ORDERS:
            if problem := run(flavor, order, "*", 600):
                sys.exit(f"mutate_kernels: unchanged kernels: {flavor}, {order}: {problem}")
        seconds[flavor] = 30 + 3 * (time.monotonic() - start)
    return seconds


def changed_lines(mutation: Mutation, text: str) -> tuple[str, str]:
    line = mutation.line(text) - 1
    return text.splitlines()[line].strip(), mutation.applied(text).splitlines()[line].strip()


def report(results: list[tuple[Mutation, str, str]], arguments: argparse.Namespace) -> str:
    survivors = [result for result in results if result[2] == ""]
    head = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [
        "# Random changes of the kernels and who noticed",
        "",
        f"tests/long/mutate.sh, commit {commit.stdout.strip()}, seed {arguments.seed}: "
        f"{len(results) - len(survivors)} of {len(results)} caught.",
        "",
        "| # | place | kind | changed to | noticed by |",
        "|---|---|---|---|---|",
    ]
    for number, (mutation, text, caught) in enumerate(results, 1):
        place = f"{mutation.file.relative_to(ROOT)}:{mutation.line(text)}"
        change = changed_lines(mutation, text)[1].replace("|", "\\|")
        lines.append(f"| {number} | {place} | {mutation.kind} | `{change}` | {caught or '**nobody**'} |")
    lines += ["", "## Survivors", ""]
    for number, (mutation, text, caught) in enumerate(results, 1):
        if caught == "":
            old, new = changed_lines(mutation, text)
            place = f"{mutation.file.relative_to(ROOT)}:{mutation.line(text)}"
            lines += [f"### {number}: {place}", "", "```diff", f"- {old}", f"+ {new}", "```", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--tries", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    files = sorted((ROOT / "kernels").rglob("*.cu*"))
    texts = {file: file.read_text("utf-8") for file in files if arguments.only in file.name}
    mutations = [mutation for file, text in texts.items() for mutation in mutations_of(file, text)]
    print(f"{len(mutations)} places to change in {len(texts)} files", flush=True)
    seconds = unbroken()
    results: list[tuple[Mutation, str, str]] = []
    for mutation in drawn(mutations, arguments.seed):
        if len(results) == arguments.tries:
            break
        text = texts[mutation.file]
        if has_no_effect(mutation, text):
            continue
        caught = caught_by(mutation, text, seconds)
        verdict = "does not compile" if caught is None else caught or "SURVIVES"
        place = f"{mutation.file.name}:{mutation.line(text)}"
        changed = changed_lines(mutation, text)[1]
        print(f"{len(results) + 1}: {place} {mutation.kind} `{changed}`: {verdict}", flush=True)
        if caught is not None:
            results.append((mutation, text, caught))
            arguments.report.write_text(report(results, arguments), "utf-8")
    survivors = sum(caught == "" for _, _, caught in results)
    print(f"{len(results) - survivors} of {len(results)} changes were noticed")
    return 0 if len(results) == min(arguments.tries, len(mutations)) else 1


if __name__ == "__main__":
    sys.exit(main())
