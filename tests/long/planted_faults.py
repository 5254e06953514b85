"""For the scripts that plant faults in the sources one at a time and see which test notices.

A fault is (file, text, replacement, what it is).
"""
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"


def run(command, **options):
    return subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=False, **options)


def lint(faults, least):
    wrong = [f"{file}: {(ROOT / file).read_text().count(text)} times: {text}" for file, text, _, _ in faults
             if (ROOT / file).read_text().count(text) != 1]
    if len(faults) < least:
        wrong.append(f"{len(faults)} faults, {least} are wanted")
    print("\n".join(wrong) or f"{len(faults)} planted faults: the text of each stands in its file once")
    return 1 if wrong else 0


def plant_all(faults, noticed_by, title):
    """noticed_by(work, fault): the test that notices, or None. Writes the table beside the script."""
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    rows, survivors = [], 0
    for fault in faults:
        if only not in fault[3]:
            continue
        with tempfile.TemporaryDirectory() as work:
            test = noticed_by(Path(work), fault)
        survivors += test is None
        rows.append(f"| `{fault[0]}` | {fault[3]} | {'**survived**' if test is None else f'`{test}`'} |")
        print(rows[-1], flush=True)
    if not only:
        script = Path(sys.argv[0]).resolve().relative_to(ROOT)
        text = f"{len(rows)} faults planted, {len(rows) - survivors} noticed.\n"
        (ROOT / script).with_suffix(".md").write_text(
            f"# {title}\n\n`{script}` wrote this. " + text +
            "\n| file | fault | noticed by |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    print(f"{len(rows)} faults, {survivors} survived")
    return 1 if survivors or not rows else 0
