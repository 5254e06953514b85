"""Measures what observing a run costs on this CPU. Writes bench/results/observing_cpu.json.

usage: python3 bench/observing_speed.py [--only convnet,resnet20] [--rounds 9] [--max-others 15]

Four runs in turn, on built-in images with one rank: without log lines, event files and report; with the defaults;
without the flight recorder; and with --trace over all steps as well. The cost is what training loses in images per
second, round by round; other_s is what the report and the event files take before the first and after the last step, in
seconds.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, merge_result, origin, output_of, ratio, run_rounds

NETWORKS = {  # at most 131,072 spans fit into a trace
    "convnet": {"program": "train_convnet", "title": "ConvNet", "batch": 64, "steps": 1400},
    "resnet20": {"program": "train_resnet", "title": "ResNet-20", "batch": 128, "steps": 150},
}


def run(network: dict, flags: list[str]) -> dict:
    """Images per second of the training steps, and the seconds of the process without these."""
    with tempfile.TemporaryDirectory() as folder:
        line = [str(PROGRAMS / network["program"]), "-b", str(network["batch"]), "--epochs", "1000"]
        line += ["--max-steps", str(network["steps"]), "--progress", "none", "-o", f"{folder}/run", *flags]
        start = time.monotonic()
        output_of(line)
        elapsed = time.monotonic() - start
        images_per_s = json.loads(Path(folder, "run", "run.json").read_text())["final"]["images_per_s"]
    return {"images_per_s": images_per_s, "other_s": elapsed - network["steps"] * network["batch"] / images_per_s}


def measure(network: dict, rounds: int, max_others: float) -> dict:
    steps = network["steps"]
    title = f"{network['title']}, batch {network['batch']}"
    variants = {
        "bare": ["-p", str(10 * steps), "--no-tensorboard", "--no-report"],
        "observed": [],
        "unrecorded": ["--no-flight"],
        "traced": ["--trace", f"1:{steps}"],
    }
    programs = {name: lambda flags=flags: run(network, flags) for name, flags in variants.items()}
    kept, others = run_rounds(programs, rounds, max_others, title)

    def speeds(name: str) -> list[float]:
        return [results[name]["images_per_s"] for results in kept]

    def other_s(name: str) -> float:
        return statistics.median(results[name]["other_s"] for results in kept)

    return origin("bench/observing_speed.py") | {
        "title": title,
        "steps": steps,
        "images_per_s": round(statistics.median(speeds("observed"))),
        "observed_over_bare": ratio(speeds("observed"), speeds("bare")),
        "observed_over_unrecorded": ratio(speeds("observed"), speeds("unrecorded")),
        "traced_over_observed": ratio(speeds("traced"), speeds("observed")),
        "other_s": round(other_s("observed") - other_s("bare"), 2),
        "others_percent_max": round(max(others)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="convnet,resnet20", metavar="PARTS")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    args = parser.parse_args()
    for part in args.only.split(","):
        merge_result(RESULTS / "observing_cpu.json", {part: measure(NETWORKS[part], args.rounds, args.max_others)})


if __name__ == "__main__":
    main()
