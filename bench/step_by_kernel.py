"""Times a training step by kernel, beside this machine's products and copies. Writes bench/results/step_by_kernel.json.

usage: python3 bench/step_by_kernel.py [--only convnet,resnet20,airbench94,resnet18,resnet50] [--dtypes f32,bf16]
           [--rounds 3] [--max-others 15]

Each network trains on images of random bytes, one rank with all cores, and its timeline (`--trace`) tells how long each
layer's forward and backward took: the mean over steps, so that parts add up, and the median over rounds. Convolutions
and products are compared with the largest product of bench_kernels, norms with its copy: a norm's passes over memory
are three forward and five backward. The rounds also run those two benchmarks, so that all see the same machine.
"""

import argparse
import json
import math
import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, merge_result, origin, output_of, run_rounds

LIMITS = {"product": "cpu/linear_forward/{}/1024x2048x1024", "copy": "cpu/copy/f32/25557032"}
PRODUCTS = ("conv2d", "linear")
NORM_PASSES = 8
BYTES = {"f32": 4, "bf16": 2}
WARM = 3  # steps before the timeline


@dataclass
class Work:
    """The multiplications of a training step and the elements that norms read, for one image."""

    forward: int = 0
    backward: int = 0
    norm_elements: int = 0

    def conv(self, side: int, inputs: int, outputs: int, taps: int, *, norm: bool = True, gradients: int = 2) -> None:
        """A square convolution whose output has `side`, and its gradients: of weights and inputs, or fewer."""
        products = side * side * inputs * outputs * taps * taps
        self.forward += products
        self.backward += gradients * products
        if norm:
            self.norm_elements += side * side * outputs

    def linear(self, inputs: int, outputs: int) -> None:
        self.forward += inputs * outputs
        self.backward += 2 * inputs * outputs


def convnet() -> Work:
    work = Work()
    work.conv(28, 1, 16, 5, gradients=1)  # images need none
    work.conv(14, 16, 32, 5)
    work.linear(7 * 7 * 32, 10)
    return work


def resnet20() -> Work:
    work = Work()
    work.conv(32, 3, 16, 3, gradients=1)
    before = 16
    for side, width in ((32, 16), (16, 32), (8, 64)):
        for inputs in (before, *[width] * 5):
            work.conv(side, inputs, width, 3)
        before = width
    work.linear(64, 10)
    return work


def airbench94() -> Work:
    work = Work()
    work.conv(31, 3, 24, 2, norm=False, gradients=0)  # frozen
    before = 24
    for side, width in ((31, 64), (15, 256), (7, 256)):
        work.conv(side, before, width, 3, norm=False)  # pooled before its norm
        work.norm_elements += (side // 2) ** 2 * width
        work.conv(side // 2, width, width, 3)
        before = width
    work.linear(256, 10)
    return work


def resnet18() -> Work:
    work = Work()
    work.conv(32, 3, 64, 3, gradients=1)
    before = 64
    for side, width in ((32, 64), (16, 128), (8, 256), (4, 512)):
        for inputs in (before, width, width, width):
            work.conv(side, inputs, width, 3)
        if before != width:
            work.conv(side, before, width, 1)
        before = width
    work.linear(512, 10)
    return work


def resnet50() -> Work:
    work = Work()
    work.conv(112, 3, 64, 7, gradients=1)
    before = 64
    for side, width, blocks in ((56, 64, 3), (28, 128, 4), (14, 256, 6), (7, 512, 3)):
        for block in range(blocks):
            first = side * 2 if block == 0 and width > 64 else side  # the stride is the 3x3's
            work.conv(first, before, width, 1)
            work.conv(side, width, width, 3)
            work.conv(side, width, 4 * width, 1)
            if block == 0:
                work.conv(side, before, 4 * width, 1)
            before = 4 * width
    work.linear(2048, 1000)
    return work


@dataclass
class Network:
    title: str
    batch: int
    line: list[str]
    work: Work
    steps: int


NETWORKS = {
    "convnet": Network("ConvNet, 28x28", 32, ["train_convnet"], convnet(), 60),
    "resnet20": Network("ResNet-20, 32x32", 128, ["train_resnet", "-a", "resnet20"], resnet20(), 12),
    "airbench94": Network("airbench94, 32x32", 1024, ["train_resnet", "-a", "airbench94"], airbench94(), 4),
    "resnet18": Network(
        "ResNet-18, 32x32", 128, ["train_resnet", "-a", "resnet18", "--cifar-stem"], resnet18(), 5),
    "resnet50": Network(
        "ResNet-50, 224x224", 32, ["train_resnet", "-a", "resnet50"], resnet50(), 3),
}


def milliseconds_by_kernel(network: Network, dtype: str, cores: int) -> dict[str, float]:
    """The times of the mean step; `step` is the whole, `rest` the time outside of all spans."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder, "run")
        last = WARM + network.steps
        line = [str(PROGRAMS / network.line[0]), *network.line[1:], "-b", str(network.batch), "--no-eval"]
        line += ["--max-steps", str(last), "--trace", f"{WARM + 1}:{last}", "--threads", str(cores)]
        line += ["--dataset", "synthetic"]  # drawn images would take time from the step's threads
        line += ["--opt-level", "O2", "--dtype", "bf16"] if dtype == "bf16" else []
        output_of([*line, "--progress", "none", "-o", str(directory)])
        events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event.get("ph") == "X"]
    steps = [span for span in spans if span["name"].split()[0] == "step"]
    found = defaultdict(list)
    for step in steps:
        first, end = step["ts"], step["ts"] + step["dur"]
        sums = defaultdict(float)
        for span in spans:
            name = span.get("args", {}).get("op", span["name"].rstrip("0123456789 "))
            is_counted = "op" in span.get("args", {}) or name in ("wait for images", "prepare images", "optimizer")
            if is_counted and first <= span["ts"] < end:
                sums[name] += span["dur"] / 1000
        sums["rest"] = step["dur"] / 1000 - sum(sums.values())
        sums["step"] = step["dur"] / 1000
        for name, value in sums.items():
            found[name].append(value)
    return {name: sum(values) / len(steps) for name, values in found.items()}


def limits(dtype: str) -> dict[str, float]:
    """GFLOP/s of a large product and GB/s of a large copy."""
    values = {}
    for name, case in LIMITS.items():
        line = [str(PROGRAMS / "bench_kernels"), f"--benchmark_filter=^{case.format(dtype)}/"]
        line += ["--benchmark_format=json"]
        one = json.loads(output_of(line))["benchmarks"][0]
        values[name] = one["FLOP/s" if name == "product" else "bytes_per_second"] / 1e9
    return values


def rates(network: Network, dtype: str, times: dict[str, float]) -> dict[str, float]:
    """GFLOP/s of all products, forward and backward, and GB/s of all norms."""
    work = network.work
    products = 2 * (work.forward + work.backward) * network.batch / sum(times.get(name, 0) for name in PRODUCTS) / 1e6
    moved = NORM_PASSES * work.norm_elements * network.batch * BYTES[dtype]
    return {"product": products, "copy": moved / times["batch_norm"] / 1e6}


def measure(name: str, dtype: str, args: argparse.Namespace, cores: int) -> dict:
    network = NETWORKS[name]
    programs = {"limits": lambda: limits(dtype), "times": lambda: milliseconds_by_kernel(network, dtype, cores)}
    kept, others = run_rounds(programs, args.rounds, args.max_others, f"{name} {dtype}")
    kernels = {kernel for results in kept for kernel in results["times"]}
    times = {
        kernel: statistics.median(results["times"].get(kernel, 0.0) for results in kept) for kernel in kernels}
    reached = rates(network, dtype, times)
    most = {limit: statistics.median(results["limits"][limit] for results in kept) for limit in LIMITS}
    assert all(math.isfinite(value) for value in (*times.values(), *reached.values(), *most.values()))
    return {
        "title": f"{network.title}, batch {network.batch}, {dtype}",
        "rounds": args.rounds,
        "others_percent_max": round(max(others)),
        "ms": {kernel: round(times[kernel], 3) for kernel in sorted(times, key=times.get, reverse=True)},
        "reached": {limit: round(value, 1) for limit, value in reached.items()},
        "limit": {limit: round(value, 1) for limit, value in most.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(NETWORKS))
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "step_by_kernel.json")
    args = parser.parse_args()
    for name in args.only.split(","):
        for dtype in args.dtypes.split(","):
            result = origin("bench/step_by_kernel.py")
            merge_result(args.output, {f"{name}_{dtype}": result | measure(name, dtype, args, result["cores"])})


if __name__ == "__main__":
    main()
