#!/usr/bin/env python3
"""usage: tests/long/over_cudnn.py [FILTER]

All tests of training on the emulated machine, over its cuDNN: as one graph a step and without a graph, with engines by
rule and by --autotune. A test may fail where it asks for the way itself (EXPECTED says why). Writes
tests/long/over_cudnn.md, unless a FILTER of GoogleTest's leaves tests out. Needs build/release/bin/test_emulated_train
and the programs that it starts.
"""
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WAYS = ["", "--no-graph", "--autotune", "--no-graph --autotune"]
EXPECTED = {  # patterns of the tests that ask for the way itself
    "CudaAuditA1Programs.*": "plans the workspace of engines by rule; timed ones take more, and the run is refused",
    "Levels/EmulatedSteps.GiveTheSameBitsAsAGraph/*": "counts a graph's launches",
    "OneRank.AGraphAStepGivesTheSameBits": "reads \"a graph a step\" in the start line",
    "OneRank.LearnsWhatTheCpuLearns": "reads \"a graph a step\" in the start line",
    "OverNccl.RanksGiveTheBitsOfOne": "reads \"a graph a step\" in the start line",
    "OneRank.WithoutCudnnThereAreNoEnginesToChoose": "runs without cuDNN, where --autotune is refused",
}


def run(flags: str, tests: str) -> tuple[int, list[str], float]:
    """The number of tests, those that failed, and processor minutes."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        environment = {**os.environ, "LOCKSTEP_EMULATION_CUDNN": "on", "LOCKSTEP_TEST_FLAGS": flags}
        before = os.times()
        log = subprocess.run(
            [ROOT / "build/release/bin/test_emulated_train", "--gtest_brief=1", f"--gtest_filter={tests}",
             f"--gtest_output=json:{report}"], env=environment, capture_output=True, text=True, check=False)
        after = os.times()
        if not report.exists():
            sys.exit(f"{flags}: the tests ended early\n{log.stdout[-4000:]}{log.stderr[-4000:]}")
        suites = json.loads(report.read_text())["testsuites"]
    cases = [(f"{suite['name']}.{case['name']}", case) for suite in suites for case in suite["testsuite"]]
    failed = sorted(name for name, case in cases if case.get("failures"))
    if any(not reason_of(name) for name in failed):
        print(log.stdout)
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return len([name for name, case in cases if case["status"] == "RUN"]), failed, used / 60


def reason_of(test: str) -> str:
    return next((why for pattern, why in EXPECTED.items() if fnmatch.fnmatch(test, pattern)), "")


def main() -> None:
    tests = sys.argv[1] if len(sys.argv) > 1 else "*"
    rows, reasons, unknown = [], {}, []
    for flags in WAYS:
        count, failed, minutes = run(flags, tests)
        reasons |= {name: reason_of(name) for name in failed}
        unknown += [f"{name} with {flags or 'no flag'}" for name in failed if not reason_of(name)]
        shown = f"`{flags}`" if flags else "none"
        rows.append(f"| {shown} | {count} | {count - len(failed)} | {len(failed)} | {minutes:.1f} |")
        print(rows[-1], flush=True)
    verdict = "ALSO FAILED: " + ", ".join(unknown) if unknown else "No other test failed."
    if tests == "*":
        listed = "\n".join(f"- `{name}` {why}" for name, why in sorted(reasons.items()) if why)
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
