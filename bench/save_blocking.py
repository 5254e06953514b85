"""Measures how long saves hold up a ResNet-50 on this CPU and disk. Writes bench/results/save_blocking.json.

usage: python3 bench/save_blocking.py [--rounds 3] [--max-others 15] [--folder DIR]

A training on random images, one rank, with momentum, saves after every fourth step of 24. Its timeline tells how long
each save held the steps up, and how long the end of the run waited for the last save's files: as long as a save that
training waits for. `beside` compares the steps during which files are written with the others. The run directories lie
in DIR (the temporary folder), whose disk counts.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, merge_result, origin, output_of, run_rounds

STEPS, SAVE_STEPS, BATCH = 24, 4, 2


def run(folder: str) -> dict:
    """Milliseconds that each save held the steps up, that the end waited, and that steps took."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        directory = Path(place, "run")
        line = [str(PROGRAMS / "train_resnet"), "-a", "resnet50", "--dataset", "synthetic", "-b", str(BATCH)]
        line += ["--max-steps", str(STEPS), "--save-steps", str(SAVE_STEPS), "--no-eval", "--progress", "none"]
        output_of([*line, "--trace", f"1:{STEPS + 1}", "-o", str(directory)])
        events = json.loads((directory / "trace.json").read_text())["traceEvents"]
        written = sum(path.stat().st_size for path in (directory / "checkpoints").glob(f"step{STEPS:07}.*"))
    spans = [event for event in events if event.get("ph") == "X"]
    saves = [span["dur"] / 1000 for span in spans if span["name"] == "checkpoint"]
    steps = [span["dur"] / 1000 for span in spans if span["name"].split()[0] == "step"]
    if len(saves) != STEPS // SAVE_STEPS + 1 or len(steps) != STEPS:
        raise RuntimeError(f"{len(saves)} saves and {len(steps)} steps in the timeline")
    beside = steps[SAVE_STEPS::SAVE_STEPS]
    others = [step for i, step in enumerate(steps) if i % SAVE_STEPS >= 2]
    return {"blocked": saves[:-1], "waited": saves[-1], "beside": beside, "others": others, "bytes": written}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    parser.add_argument("--folder", default=tempfile.gettempdir(), metavar="DIR")
    args = parser.parse_args()
    title = f"ResNet-50, batch {BATCH}"
    kept, others = run_rounds({"run": lambda: run(args.folder)}, args.rounds, args.max_others, title)
    runs = [results["run"] for results in kept]

    def all_of(name: str) -> list[float]:
        return [value for result in runs for value in result[name]]

    blocked = all_of("blocked")

    result = origin("bench/save_blocking.py") | {
        "title": title,
        "megabytes": round(runs[0]["bytes"] / 1e6),
        "saves": len(blocked),
        "blocked_ms": {"median": round(statistics.median(blocked), 1), "max": round(max(blocked), 1)},
        "end_waited_ms": round(statistics.median(result["waited"] for result in runs)),
        "step_ms": round(statistics.median(all_of("others"))),
        "step_beside_ms": round(statistics.median(all_of("beside"))),
        "others_percent_max": round(max(others)),
    }
    merge_result(RESULTS / "save_blocking.json", {"resnet50": result})


if __name__ == "__main__":
    main()
