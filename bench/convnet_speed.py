"""ConvNet training speed on this CPU: against PyTorch, and over ranks. Writes bench/results/convnet_cpu.json.

usage: python3 bench/convnet_speed.py --mnist DIR [--only ranks,pytorch,bf16] [--pairs 5]
           [--peer 'PYTHON a_mnist.py RAW_DIR --mode fast --cl']

The sides of a ratio run in turn, A B A B ...: absolute speeds of a shared machine mean little. Images per second
count training alone; start-up is from process start to the end of step 1. The peer prints "images/s per epoch [N]"
and "first_step Ss"; it runs for one epoch, under tcmalloc where there is one, and takes --dtype bf16. A part that is
measured replaces that part of the results alone.
"""

import argparse
import json
import re
import shlex
import statistics
import subprocess
import tempfile
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, TCMALLOC, merge_result, on_ranks, origin, output_of, ratio, run_rounds

PROGRAM = PROGRAMS / "train_convnet"


def lockstep(mnist: str, ranks: int, threads: int, *more: str) -> dict:
    """run.json's final figures of one epoch of the tutorial's baseline."""
    with tempfile.TemporaryDirectory() as folder:
        line = [str(PROGRAM), mnist, "--preset", "demo-baseline", "--epochs", "1", "-p", "1000"]
        line += ["--threads", str(threads), "-o", f"{folder}/run", *more]
        subprocess.run(on_ranks(ranks, line), check=True, capture_output=True)
        return json.loads(Path(folder, "run", "run.json").read_text())["final"]


def peer(command: str) -> dict:
    out = output_of([*shlex.split(command), "--epochs", "1", "--test", "0"], TCMALLOC)
    return {
        "images_per_s": float(re.search(r"images/s per epoch \[(\d+)", out)[1]),
        "first_step_s": float(re.search(r"first_step ([\d.]+)s", out)[1]),
    }


def paired(title: str, a, b, args: argparse.Namespace) -> dict:
    """Medians of both sides and their ratio."""
    kept, shares = run_rounds({"a": a, "b": b}, args.pairs, args.max_others, title)
    speeds = {side: [results[side]["images_per_s"] for results in kept] for side in ("a", "b")}
    medians = {f"{side}_images_per_s": round(statistics.median(speeds[side])) for side in speeds}
    return medians | {"speed": ratio(speeds["a"], speeds["b"]), "others_percent_max": round(max(shares))}


def first_steps(mnist: str, ranks: int, threads: int, runs: int) -> float:
    times = [lockstep(mnist, ranks, threads, "--max-steps", "1")["first_step_s"] for _ in range(runs)]
    return round(statistics.median(times), 3)


def over_ranks(args: argparse.Namespace, where: dict) -> dict:
    return where | {
        "two_ranks_over_one": paired(
            "2 ranks / 1 rank, 1 thread each",
            lambda: lockstep(args.mnist, 2, 1),
            lambda: lockstep(args.mnist, 1, 1),
            args,
        ),
        "eight_shards_over_two": paired(
            "8 shards / 2 shards, 2 ranks of 1 thread",
            lambda: lockstep(args.mnist, 2, 1, "--shards", "8"),
            lambda: lockstep(args.mnist, 2, 1, "--shards", "2"),
            args,
        ),
        "first_step_s_one_rank": first_steps(args.mnist, 1, where["cores"], args.pairs),
        "first_step_s_two_ranks": first_steps(args.mnist, 2, 1, args.pairs),
    }


def over_pytorch(args: argparse.Namespace, where: dict) -> dict:
    ours = lambda: lockstep(args.mnist, 1, where["cores"])  # noqa: E731
    return where | {
        "over_pytorch": paired("Lockstep / PyTorch", ours, lambda: peer(args.peer), args),
        "peer_first_step_s": statistics.median(peer(args.peer)["first_step_s"] for _ in range(args.pairs)),
        "peer_first_step_runs": args.pairs,
    }


def over_pytorch_bf16(args: argparse.Namespace, where: dict) -> dict:
    ours = lambda: lockstep(args.mnist, 1, where["cores"], "--opt-level", "O2", "--dtype", "bf16")  # noqa: E731
    theirs = lambda: peer(f"{args.peer} --dtype bf16")  # noqa: E731
    return {"bf16": where | paired("O2 in bf16 / PyTorch's autocast", ours, theirs, args)}


PARTS = {"ranks": over_ranks, "pytorch": over_pytorch, "bf16": over_pytorch_bf16}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", required=True, metavar="DIR")
    parser.add_argument("--only", default="ranks,pytorch,bf16", metavar="PARTS")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    parser.add_argument("--peer", metavar="COMMAND", help="PyTorch's side; ranks alone needs none")
    args = parser.parse_args()
    parts = args.only.split(",")
    if not args.peer and parts != ["ranks"]:
        parser.error("--peer is missing; --only ranks measures without it")

    where = origin("bench/convnet_speed.py")
    if args.peer:
        where["peer"] = "PyTorch, " + " ".join(shlex.split(args.peer)[3:])
    for part in parts:
        merge_result(RESULTS / "convnet_cpu.json", PARTS[part](args, where))


if __name__ == "__main__":
    main()
