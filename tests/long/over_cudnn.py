#!/usr/bin/env python3
"""usage: tests/long/over_cudnn.py [FILTER]

All tests of training on the emulated machine, over its cuDNN: as one graph a step and without a graph, with engines by
rule and by --autotune. A test may fail where it asks for the way itself (EXPECTED says why). Writes
tests/long/over_cudnn.md, unless a FILTER of GoogleTest's leaves tests out. Needs build/release/bin/test_emulated_train
and the programs that it starts.
"""
import fnmatch
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/test_emulated_train"
WAYS = ["", "--no-graph", "--autotune", "--no-graph --autotune"]
# Assertions that ask for the graph that --no-graph takes away. All others of such a test must hold.
GRAPH = re.compile(r'graph_launches|graph\.launches|one graph per step|(more|few)\[[01]\] - few\[[01]\]|"graph"')
EXPECTED = {  # tests that ask for another way themselves
    "ProgramsInPlannedMemory.*": "plans the workspace of engines by rule; timed ones take more, and the run is refused",
    "OverCudnn.AutotuneTakesTheFastestAndItsFileGivesItAgain":
        "compares a run by rule with a timed one; here both are timed",
    "OverCudnn.SaysWhatFailsWhileItRuns":
        "expects the message of a run by rule; a timed one passes over the engine and says that none is left",
    "CudnnAbsent.ConvolutionsWithoutCudnnAreSaidAtTheStart": "asks for a run without cuDNN, which is there",
    "OneRank.WithoutCudnnThereAreNoEnginesToChoose": "runs without cuDNN, where --autotune is refused",
}


def names_of(tests: str) -> list[str]:
    listed = subprocess.run([PROGRAM, "--gtest_list_tests", f"--gtest_filter={tests}"], capture_output=True, text=True,
                            check=True).stdout
    names, suite = [], ""
    for line in listed.splitlines():
        word = line.split("#")[0].strip()
        if word.endswith("."):
            suite = word
        elif line.startswith(" ") and not word.startswith("DISABLED_"):
            names.append(suite + word)
    return names


def reason_of(test: str, log: str, flags: str) -> str:
    """Why a test may fail; empty: it may not."""
    assertions = re.split(r"^.*: Failure$", log, flags=re.M)[1:]
    if "--no-graph" in flags and assertions and all(GRAPH.search(text) for text in assertions):
        return "asks for a graph, which `--no-graph` takes away; all else that it asks holds"
    return next((why for pattern, why in EXPECTED.items() if fnmatch.fnmatch(test, pattern)), "")


def run(flags: str, tests: list[str]) -> tuple[dict[str, str], float]:
    """The tests that failed, each in a process of its own as under ctest, with why they may; and processor minutes."""
    environment = {**os.environ, "LOCKSTEP_EMULATION_CUDNN": "on", "LOCKSTEP_TEST_FLAGS": flags}
    before, failed = os.times(), {}
    for test in tests:
        log = subprocess.run([PROGRAM, "--gtest_brief=1", f"--gtest_filter={test}"], env=environment,
                             capture_output=True, text=True, check=False)
        if log.returncode == 0:
            continue
        failed[test] = reason_of(test, log.stdout, flags)
        if not failed[test]:
            print(log.stdout + log.stderr)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return failed, used / 60


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else "*"
    tests = names_of(wanted)
    if not tests:
        sys.exit(f"no test is named {wanted}")
    rows, reasons, unknown = [], {}, []
    for flags in WAYS:
        failed, minutes = run(flags, tests)
        reasons |= failed
        unknown += [f"{name} with {flags or 'no flag'}" for name, why in failed.items() if not why]
        shown = f"`{flags}`" if flags else "none"
        rows.append(f"| {shown} | {len(tests)} | {len(tests) - len(failed)} | {len(failed)} | {minutes:.1f} |")
        print(rows[-1], flush=True)
    verdict = "ALSO FAILED: " + ", ".join(unknown) if unknown else "No other test failed."
    if wanted == "*":
        listed = "\n".join(textwrap.fill(f"- `{name}` {why}", 120, subsequent_indent="  ", break_on_hyphens=False)
                           for name, why in sorted(reasons.items()) if why)
        (ROOT / "tests/long/over_cudnn.md").write_text(f"""# Training tests over the emulated cuDNN, by every way

`tests/long/over_cudnn.py` wrote this on {time.strftime("%Y-%m-%d")}: the tests of `test_emulated_train`, whose runs on
the fake device get these flags.

| flags | tests | passed | failed as they must | processor minutes |
|---|---|---|---|---|
""" + "\n".join(rows) + f"""

{verdict} These ask for a way that the flags take from them:

{listed}
""", encoding="utf-8")
    print(verdict)
    sys.exit(1 if unknown else 0)


if __name__ == "__main__":
    main()
