"""Times a training from process start to an accuracy, against PyTorch. Writes bench/results/time_to_accuracy.json.

usage: python3 bench/time_to_accuracy.py --cifar10 DIR --mnist DIR [--only mnist,speed,scaling,cifar94] [--seeds 3]
           --python PYTHON --cifar-peer 'PYTHON cifar_to_94.py DIR'

mnist: the ConvNet to 99.0 % in one epoch of AdamW, beside bench/peers/torch_mnist.py, which PYTHON, with PyTorch,
runs. cifar94: `--preset cifar-94`; a run takes about an hour on 2 cores. speed: images per second of the first --steps
steps of that recipe. scaling: 2 ranks of 1 thread over 1 rank of 1 thread, likewise. All but scaling in f32 and bf16.
PART_avx2, as speed_avx2, is f32 alone and keeps both sides to what a processor without AVX-512 has.
Seconds run from the start of a process to its end, so they hold what it loads, trains and evaluates. Each seed is a
round, A B A B ...; rounds with busy neighbors are run again. A part that is measured replaces that part of the results
alone.
"""

import argparse
import json
import re
import shlex
import statistics
import tempfile
import time
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, ROOT, TCMALLOC, measure_part, on_ranks, origin, output_of, ratio, run_rounds

BF16 = ["--opt-level", "O2", "--dtype", "bf16"]
DTYPES = {"f32": [], "bf16": BF16}
MNIST = ["--opt", "adamw", "--lr", "0.004", "--lr-scheduler", "linear", "--label-smoothing", "0.1", "--epochs", "1"]
MNIST_PEER = ROOT / "bench/peers/torch_mnist.py"


def lockstep(program: str, ranks: int, threads: int, flags: list[str]) -> dict:
    """Seconds of the whole process, images per second, and the right answers of the last evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        line = [str(PROGRAMS / program), *flags, "--threads", str(threads), "-o", f"{folder}/run"]
        start = time.monotonic()
        output_of(on_ranks(ranks, line))
        seconds = time.monotonic() - start
        final = json.loads(Path(folder, "run", "run.json").read_text())["final"]
    accuracy = final["correct"] / final["total"] if "correct" in final else None
    return {"seconds": seconds, "images_per_s": final["images_per_s"], "accuracy": accuracy}


def peer(command: str, more: list[str], accuracy: str) -> dict:
    """Likewise; `accuracy` finds a share, or a count of 10,000, in the peer's output."""
    start = time.monotonic()
    out = output_of([*shlex.split(command), *more], TCMALLOC)
    seconds = time.monotonic() - start
    found, speeds = re.search(accuracy, out), re.findall(r'images(?:/s |_per_s": )([\d.]+)', out)
    share = float(found[1]) if found else None
    return {
        "seconds": seconds,
        "images_per_s": float(speeds[-1]),
        "accuracy": share / 10000 if share and share > 1 else share,
    }


def side(runs: list[dict]) -> dict:
    """Median seconds and speed of one side, and the spread of its accuracy over seeds."""
    seconds, accuracies = [run["seconds"] for run in runs], [run["accuracy"] for run in runs]
    return {
        "seconds": round(statistics.median(seconds), 2),
        "seconds_min": round(min(seconds), 2),
        "seconds_max": round(max(seconds), 2),
        "images_per_s": round(statistics.median(run["images_per_s"] for run in runs), 1),
        "accuracy_mean": round(statistics.mean(accuracies), 4),
        "accuracy_min": min(accuracies),
        "accuracy_max": max(accuracies),
    }


def compare(args: argparse.Namespace, title: str, programs: dict, figure: str) -> dict:
    """Rounds of the programs; all others are compared with the first."""
    seeds = iter(range(args.seed, args.seed + 2 * args.seeds))
    first = next(iter(programs))
    chosen: dict = {}

    def with_seed(name: str):
        def run() -> dict:
            if name == first:
                chosen["seed"] = str(next(seeds))
            return programs[name](chosen["seed"])
        return run

    kept, others = run_rounds({name: with_seed(name) for name in programs}, args.seeds, args.max_others, title)
    result: dict = {"rounds": args.seeds, "others_percent_max": round(max(others))}
    values = {name: [results[name][figure] for results in kept] for name in programs}
    for name in programs:
        runs = [results[name] for results in kept]
        result[name] = side(runs) if figure == "seconds" else {figure: round(statistics.median(values[name]), 1)}
        if name != first:
            ours, theirs = values[first], values[name]
            result[name]["ratio"] = ratio(theirs, ours) if figure == "seconds" else ratio(ours, theirs)
    return result


def mnist(args: argparse.Namespace, dtypes: list[str], cores: int) -> dict:
    line = [args.mnist, *MNIST, "-p", "1000"]

    def ours(ranks: int, precision: list[str]):
        batch = ["--global-batch-size", "32"]
        return lambda seed: lockstep(
            "train_convnet", ranks, cores // ranks, [*line, *batch, *precision, "--seed", seed])

    def theirs(dtype: str):
        command = [args.python, str(MNIST_PEER), args.mnist, "--dtype", dtype, "--threads", str(cores)]
        return lambda seed: peer(shlex.join(command), ["--seed", seed], r'"accuracy": ([\d.]+)')

    result = {}
    for dtype in dtypes:
        precision = DTYPES[dtype]
        programs = {"lockstep": ours(1, precision), "lockstep_2_ranks": ours(2, precision), "torch": theirs(dtype)}
        result[dtype] = compare(args, f"mnist {dtype}", programs, "seconds")
    return result


def cifar94(args: argparse.Namespace, dtypes: list[str], cores: int, steps: int | None) -> dict:
    """The whole recipe, or its first steps."""
    flags = [args.cifar10, "--dataset", "cifar10", "--preset", "cifar-94", "-p", "10"]
    flags += ["--max-steps", str(steps), "--no-eval"] if steps else []
    more = ["--threads", str(cores)] + (["--steps", str(steps)] if steps else [])

    def ours(precision: list[str]):
        return lambda seed: lockstep("train_resnet", 1, cores, [*flags, *precision, "--seed", seed])

    def theirs(dtype: str):
        line = [*more, "--dtype", dtype]
        return lambda seed: peer(args.cifar_peer, [*line, "--seed", seed], r"with TTA (\d+) of")

    result = {"steps": steps} if steps else {}
    for dtype in dtypes:
        programs = {"lockstep": ours(DTYPES[dtype]), "torch": theirs(dtype)}
        figure = "images_per_s" if steps else "seconds"
        result[dtype] = compare(args, f"cifar94 {dtype}", programs, figure)
    return result


def scaling(args: argparse.Namespace) -> dict:
    flags = [args.cifar10, "--dataset", "cifar10", "--preset", "cifar-94", "-p", "10"]
    flags += ["--max-steps", str(args.steps), "--no-eval"]
    programs = {
        "two_ranks": lambda seed: lockstep("train_resnet", 2, 1, [*flags, "--seed", seed]),
        "one_rank": lambda seed: lockstep("train_resnet", 1, 1, [*flags, "--seed", seed]),
    }
    return {"steps": args.steps} | compare(args, "scaling", programs, "images_per_s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar10", metavar="DIR")
    parser.add_argument("--mnist", metavar="DIR")
    parser.add_argument("--cifar-peer", metavar="COMMAND")
    parser.add_argument("--python", default="python3", help="that has PyTorch")
    parser.add_argument("--only", default="mnist,speed,scaling,cifar94", metavar="PARTS")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--steps", type=int, default=10, help="of speed and scaling")
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "time_to_accuracy.json")
    args = parser.parse_args()
    for part in args.only.split(","):
        result = origin("bench/time_to_accuracy.py")
        cores, plain = result["cores"], part.removesuffix("_avx2")
        dtypes = args.dtypes.split(",") if part == plain else ["f32"]
        measured = {
            "mnist": lambda: mnist(args, dtypes, cores),  # noqa: B023
            "speed": lambda: cifar94(args, dtypes, cores, args.steps),  # noqa: B023
            "scaling": lambda: scaling(args),
            "cifar94": lambda: cifar94(args, dtypes, cores, None),  # noqa: B023
        }
        measure_part(args.output, part, lambda: result | measured[plain]())  # noqa: B023


if __name__ == "__main__":
    main()
