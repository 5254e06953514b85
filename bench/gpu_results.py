"""Writes what bench/gpu_suite.sh found as JSON.

usage: python3 bench/gpu_results.py suite RESULTS COMMIT STATE...      gpu_suite.json: what became of each part
       python3 bench/gpu_results.py training RESULTS COMMIT RUN_JSON...  training_cuda.json: final figures of each run
       python3 bench/gpu_results.py kernels RESULTS COMMIT BENCH_JSON  kernels_cuda.json, from Google Benchmark's file
       python3 bench/gpu_results.py peers RESULTS COMMIT PEER_JSON     adds bench/peers/torch_kernels.py's times to it
"""

import datetime
import json
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
    """A row a case of bench_kernels, "cuda/<op>/<dtype>/<shape>/..."."""
    rows = []
    for case in report["benchmarks"]:
        _, op, dtype, shape = case["name"].split("/")[:4]
        if case.get("error_occurred"):
            raise SystemExit(f"{case['name']} failed: {case.get('error_message')}")
        rows.append(
            {
                "op": op,
                "dtype": dtype,
                "shape": shape,
                "us": round(case["real_time"] * {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[case["time_unit"]], 2),
                "gb_per_s": round(case["GB/s"], 1),
                "of_copy": round(case["of_copy"], 3),
            }
        )
    return rows


def with_peer(rows: list[dict], microseconds: dict[str, float]) -> list[dict]:
    """The rows with the peer's time and how many times as fast we are, where the peer has the case."""
    found = []
    for row in rows:
        theirs = microseconds.get("{op}/{dtype}/{shape}".format(**row))
        found.append(row if theirs is None else row | {"peer_us": theirs, "over_peer": round(theirs / row["us"], 2)})
    return found


def trainings_of(records: list[Path]) -> dict:
    """Name of the run's directory -> how it was started and its final figures, null where it did not end."""
    found = {}
    for path in records:
        record = json.loads(path.read_text())
        figures = ("acc1", "images_per_s", "wall_s", "first_step_s")
        final = record["final"] and {name: record["final"][name] for name in figures}
        found[path.parent.name] = {"arguments": record["argv"][1:], "final": final}
    return found


def main() -> None:
    kind, results, commit, *files = sys.argv[1:]
    origin, kernels = gpu_origin(commit), Path(results) / "kernels_cuda.json"
    if kind == "suite":
        merge_result(Path(results) / "gpu_suite.json", origin | {"parts": parts_of([Path(file) for file in files])})
        return
    if kind == "training":
        runs = trainings_of([Path(file) for file in files])
        merge_result(Path(results) / "training_cuda.json", origin | {"runs": runs})
        return
    report = json.loads(Path(files[0]).read_text())
    if kind == "kernels":
        merge_result(kernels, origin | {"kernels": kernels_of(report)})
    else:
        rows = json.loads(kernels.read_text())["kernels"]
        merge_result(kernels, {"peer": f"PyTorch {report['torch']}", "kernels": with_peer(rows, report["us"])})


if __name__ == "__main__":
    main()
