"""Writes the results of bench/gpu_suite.sh as JSON.

usage: python3 bench/gpu_results.py KIND RESULTS COMMIT FILE...
       python3 bench/gpu_results.py figure RESULTS COMMIT NAME=VALUE...      one more of gpu_figures.json

| KIND | FILE | into |
|---|---|---|
| suite | state files | gpu_suite.json: what became of each part |
| training | run.json of trainings | training_cuda.json: final figures of each run |
| convolutions | plans.json | convolutions_cuda.json: engines and times |
| kernels | Google Benchmark's | kernels_cuda.json |
| norms | Google Benchmark's | norms_cuda.json, and the lowest share of a copy's rate |
| peers | bench/peers/torch_kernels.py's | adds PyTorch's times to kernels_cuda.json |
| against-cpu | bench_train --against-cpu's | a figure of gpu_figures.json |
| scaling | bench_train's on 1 and on N ranks | images per second and efficiency there |
| trace | bench_train's | trace_cuda.json: each step's time |
| jpeg | run.json | images per second from photos |
"""

import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from side_by_side import merge_result

GPU_FIELDS = ("name", "driver_version", "clocks.max.sm", "clocks.max.mem", "memory.total")


def gpu_origin(commit: str) -> dict:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    query = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader", f"--id={first}"]
    if os.environ.get("SUITE_REHEARSES"):
        values = ["the emulated machine", *[""] * (len(GPU_FIELDS) - 1)]
    else:
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
    """A row for each case of bench_kernels, "cuda/<op>/<dtype>/<extents>/..."; an error where a library lacks it."""
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
    """Images per second: the median of the log's lines after the first epoch, or of all lines if there is only one.

    An epoch's first line is left out where it has others: it includes the loader's start.
    """
    epochs: dict[int, list[float]] = {}
    for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()):
        if line["split"] == "train":
            epochs.setdefault(line["epoch"], []).append(line["img_s"])
    later = list(epochs.values())[1:] or list(epochs.values())
    return round(statistics.median(speed for speeds in later for speed in speeds[1:] or speeds), 1)


def trainings_of(records: list[Path]) -> dict:
    """Name of the run's directory -> how it was started and its final figures, null where it did not end."""
    found = {}
    for path in records:
        record = json.loads(path.read_text())
        final = None
        if record["final"]:
            final = {name: record["final"].get(name) for name in ("acc1", "images_per_s", "wall_s", "first_step_s")}
            final["steady_images_per_s"] = steady_speed(path.parent)
        found[path.parent.name] = {"arguments": record["argv"][1:], "final": final}
    return found


def known_of(file: Path, entries: str, now: dict) -> dict:
    """The file's entries, none if they are of another commit or card than now's."""
    known = json.loads(file.read_text()) if file.exists() else {}
    return known[entries] if all(known.get(name) == now[name] for name in ("commit", "gpu")) else {}


def add_figures(results: Path, commit: str, figures: dict[str, float]) -> None:
    """Adds the figures to those of this commit and card; summary.md compares them with bench/gpu_goals.json."""
    file = results / "gpu_figures.json"
    now = gpu_origin(commit)
    merge_result(file, now | {"figures": known_of(file, "figures", now) | figures})


def scaling_figures(one: dict, many: dict) -> dict[str, float]:
    ranks = many["ranks"]
    return {
        f"nccl_{ranks}_images_per_s": round(many["images_per_s"], 1),
        f"nccl_{ranks}_efficiency": round(many["images_per_s"] / one["images_per_s"] / ranks, 3),
    }


def lowest_shares(rows: list[dict]) -> dict[str, float]:
    """The share of a copy's rate, by direction, over the 16-bit cases that are far larger than the L2 cache."""
    found: dict[str, float] = {}
    for row in rows:
        if "of_copy" not in row or row["dtype"] == "f32" or not row["op"].startswith("batch_norm_shard_"):
            continue
        direction = row["op"].removeprefix("batch_norm_shard_").split("_")[0]
        large = row["shape"].split("x")[1] in ("64", "256", "512")
        if direction in ("forward", "backward") and (large or os.environ.get("SUITE_REHEARSES")):
            name = f"norm_{direction}_of_copy"
            found[name] = min(found.get(name, row["of_copy"]), row["of_copy"])
    return found


def convolutions_of(plans: dict) -> dict:
    """A row for each convolution, the slowest first."""
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


def single_figures(kind: str, reports: list[dict], files: list[Path]) -> dict[str, float]:
    """The figures of a kind that has no file of its own."""
    report = reports[0]
    if kind == "against-cpu":
        level = "f32" if report["tolerance"] < 1e-3 else "f16"
        return {f"against_cpu_{report['arch']}_{level}": report["largest_difference"] / report["tolerance"]}
    if kind == "scaling":
        return scaling_figures(*reports)
    if kind == "jpeg":
        return {"jpeg_images_per_s": steady_speed(files[0].parent)}
    return {"trace_step_ms": round(report["step_ms_median"], 3), "trace_host_ms": round(report["host_ms_mean"], 4)}


def write_kind(kind: str, results: Path, commit: str, files: list[Path]) -> None:
    origin, kernels = gpu_origin(commit), results / "kernels_cuda.json"
    if kind == "suite":
        merge_result(results / "gpu_suite.json", origin | {"parts": parts_of(files)})
        return
    if kind == "training":
        runs = trainings_of(files)
        merge_result(results / "training_cuda.json", origin | {"runs": runs})
        if final := runs.get("convnet", {}).get("final"):
            figures = {"convnet_wall_s": final["wall_s"], "convnet_acc1": final["acc1"]}
            add_figures(results, commit, {name: value for name, value in figures.items() if value is not None})
        return
    reports = [json.loads(file.read_text()) for file in files]
    if kind == "convolutions":
        merge_result(results / "convolutions_cuda.json", origin | convolutions_of(reports[0]))
    elif kind in ("kernels", "norms"):
        rows = kernels_of(reports[0])
        merge_result(results / f"{kind}_cuda.json", origin | {"kernels": rows})
        add_figures(results, commit, lowest_shares(rows))
    elif kind == "peers":
        rows = json.loads(kernels.read_text())["kernels"]
        peer = {"peer": f"PyTorch {reports[0]['torch']}", "kernels": with_peer(rows, reports[0]["us"])}
        merge_result(kernels, peer)
    else:
        if kind == "trace":
            merge_result(results / "trace_cuda.json", origin | reports[0])
        add_figures(results, commit, single_figures(kind, reports, files))


def main() -> None:
    kind, folder, commit, *names = sys.argv[1:]
    if kind == "figure":
        add_figures(Path(folder), commit, {name: float(value) for name, value in (text.split("=") for text in names)})
    else:
        write_kind(kind, Path(folder), commit, [Path(name) for name in names])


if __name__ == "__main__":
    main()
