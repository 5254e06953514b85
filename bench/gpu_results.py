"""Writes what bench/gpu_suite.sh found as JSON.

usage: python3 bench/gpu_results.py suite RESULTS COMMIT STATE...      gpu_suite.json: what became of each part
       python3 bench/gpu_results.py training RESULTS COMMIT RUN_JSON...  training_cuda.json: final figures of each run
       python3 bench/gpu_results.py train-peers RESULTS COMMIT STEP_JSON...  adds bench/peers/torch_step.py's speeds
                                                                       to it, of files named NETWORK/VARIANT.json
       python3 bench/gpu_results.py convolutions RESULTS COMMIT PLANS_JSON  convolutions_cuda.json: engines and times
       python3 bench/gpu_results.py kernels RESULTS COMMIT BENCH_JSON  kernels_cuda.json, from Google Benchmark's file
       python3 bench/gpu_results.py peers RESULTS COMMIT PEER_JSON     adds bench/peers/torch_kernels.py's times to it
"""

import datetime
import json
import statistics
import subprocess
import sys
from pathlib import Path

from side_by_side import merge_result

GPU_FIELDS = ("name", "driver_version", "clocks.max.sm", "clocks.max.mem", "memory.total")


def gpu_origin(commit: str) -> dict:
    query = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader", "--id=0"]
    values = subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip().split(", ")
    return {
        "script": "bench/gpu_suite.sh",
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "gpu": dict(zip(GPU_FIELDS, values, strict=True)),
    }


def parts_of(states: list[Path]) -> dict:
    """Name -> how a part ended and how long it took. A state file holds "STATE SECONDS VERSION"."""
    parts = {}
    for path in sorted(states):
        state, seconds, _ = path.read_text().split()
        parts[path.stem] = {"state": state, "seconds": int(seconds)}
    return parts


def kernels_of(report: dict) -> list[dict]:
    """A row a case of bench_kernels, "cuda/<op>/<dtype>/<extents>/..."; an error where a library lacks it."""
    rows = []
    for case in report["benchmarks"]:
        _, op, dtype, shape = case["name"].split("/")[:4]
        row = {"op": op, "dtype": dtype, "shape": shape}
        if case.get("error_occurred"):
            rows.append(row | {"error": case["error_message"]})
            continue
        row |= {
            "us": round(case["real_time"] * {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[case["time_unit"]], 2),
            "gb_per_s": round(case["bytes_per_second"] / 1e9, 1),
            "of_copy": round(case["of_copy"], 3),
        }
        flops = {"tflop_per_s": round(case["FLOP/s"] / 1e12, 2)} if "FLOP/s" in case else {}
        rows.append(row | flops)
    return rows


def with_peer(rows: list[dict], microseconds: dict[str, float]) -> list[dict]:
    """The rows with the peer's time and how many times as fast we are, where both have the case."""
    found = []
    for row in rows:
        theirs = microseconds.get("{op}/{dtype}/{shape}".format(**row))
        both = theirs is not None and "us" in row
        found.append(row | {"peer_us": theirs, "over_peer": round(theirs / row["us"], 2)} if both else row)
    return found


def steady_speed(run: Path) -> float:
    """Images a second: the median of the log's lines, which the first step and the graph's making hardly move."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return round(statistics.median(line["img_s"] for line in lines if line["split"] == "train"), 1)


def trainings_of(records: list[Path]) -> dict:
    """Name of the run's directory -> how it was started and its final figures, null where it did not end."""
    found = {}
    for path in records:
        record = json.loads(path.read_text())
        final = None
        if record["final"]:
            final = {name: record["final"][name] for name in ("acc1", "images_per_s", "wall_s", "first_step_s")}
            final["steady_images_per_s"] = steady_speed(path.parent)
        found[path.parent.name] = {"arguments": record["argv"][1:], "final": final}
    return found


def over_peers(name: str, run: dict, speeds: dict[str, dict[str, float]]) -> dict[str, float]:
    """Variant of PyTorch -> how many times as fast the run is. Mixed precision meets mixed precision."""
    if run["final"] is None:
        return {}
    ours, mixed = run["final"]["steady_images_per_s"], "O2" in run["arguments"]
    theirs = speeds.get(name.split("_")[0], {})
    return {variant: round(ours / speed, 2) for variant, speed in theirs.items() if (variant != "f32") == mixed}


def with_training_peers(runs: dict, steps: list[Path]) -> dict:
    """The runs beside PyTorch's steps, each the file NETWORK/VARIANT.json."""
    reports = {path: json.loads(path.read_text()) for path in steps}
    speeds: dict[str, dict[str, float]] = {}
    for path, report in reports.items():
        speeds.setdefault(path.parent.name, {})[path.stem] = round(report["images_per_s"], 1)
    return {
        "peer": f"PyTorch {reports[steps[0]]['torch']}",
        "peer_images_per_s": speeds,
        "runs": {name: run | {"over_peer": over_peers(name, run, speeds)} for name, run in runs.items()},
    }


def convolutions_of(plans: dict) -> dict:
    """A row a convolution, the slowest first."""
    rows = [
        {
            "problem": problem,
            "engine": found["engine"],
            "us": round(found["microseconds"], 2),
            "rule_us": round(found["rule_microseconds"], 2),
        }
        for problem, found in plans["convolutions"].items()
    ]
    return {"cudnn": plans["cudnn"], "convolutions": sorted(rows, key=lambda row: -row["us"])}


def main() -> None:
    kind, folder, commit, *names = sys.argv[1:]
    origin, results, files = gpu_origin(commit), Path(folder), [Path(name) for name in names]
    training, kernels = results / "training_cuda.json", results / "kernels_cuda.json"
    if kind == "suite":
        merge_result(results / "gpu_suite.json", origin | {"parts": parts_of(files)})
    elif kind == "training":
        merge_result(training, origin | {"runs": trainings_of(files)})
    elif kind == "train-peers":
        merge_result(training, with_training_peers(json.loads(training.read_text())["runs"], files))
    elif kind == "convolutions":
        plans = json.loads(files[0].read_text())
        merge_result(results / "convolutions_cuda.json", origin | convolutions_of(plans))
    elif kind == "kernels":
        merge_result(kernels, origin | {"kernels": kernels_of(json.loads(files[0].read_text()))})
    else:
        report, rows = json.loads(files[0].read_text()), json.loads(kernels.read_text())["kernels"]
        merge_result(kernels, {"peer": f"PyTorch {report['torch']}", "kernels": with_peer(rows, report["us"])})


if __name__ == "__main__":
    main()
