"""Training steps of ResNets on this CPU against PyTorch, and over ranks. Writes bench/results/resnet_cpu.json.

usage: python3 bench/resnet_speed.py --python PYTHON [--only r18,r50,scaling,ddp] [--pairs 9] [--stock-pairs 3]

PYTHON has torch; bench/peers/torch_step.py is its side, bench_train ours. r18_bf16 and r50_bf16 are O2 in bf16 beside
PyTorch's autocast; r18_avx2, r50_avx2 and ddp_avx2 keep both sides to what a processor without AVX-512 has. Two
variants of PyTorch are met: the best in f32 (channels_last, tcmalloc) and what a tutorial writes. ddp is two ranks of
one thread, PyTorch's under DistributedDataParallel over gloo, the best variant alone. Programs run in turn, A B A B
..., in processes of their own; each reports the median of its steps, and rounds with busy neighbors are run again. A
part that is measured replaces that part of the results alone.
"""

import argparse
import functools
import json
import statistics
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, ROOT, TCMALLOC, measure_part, on_ranks, origin, output_of, ratio, run_rounds

PEER = str(ROOT / "bench" / "peers" / "torch_step.py")
R18 = ["-a", "resnet18", "--cifar-stem"]
NETWORKS = {
    "r18": {"title": "ResNet-18, CIFAR stem", "flags": R18, "batch": 128, "steps": 6},
    "r50": {"title": "ResNet-50, 224x224", "flags": ["-a", "resnet50"], "batch": 32, "steps": 3},
}
BF16 = ["--opt-level", "O2", "--dtype", "bf16"], ["--autocast", "bf16"]  # ours and PyTorch's
NETWORKS |= {
    f"{name}_bf16": network | {"title": f"{network['title']}, bf16", "bf16": True} for name, network in NETWORKS.items()
}
NETWORKS |= {
    f"{name}_avx2": NETWORKS[name] | {"title": f"{NETWORKS[name]['title']}, AVX2"} for name in ("r18", "r50")
}


def lockstep(flags: list[str], batch: int, threads: int, steps: int, ranks: int = 1) -> dict:
    line = [str(PROGRAMS / "bench_train"), *flags, "-b", str(batch), "--threads", str(threads), "--json"]
    line += ["--num-warmup-batches", "2", "--num-batches-per-iter", "1", "--num-iters", str(steps)]
    report = json.loads(output_of(on_ranks(ranks, line)))
    return report | {"images_per_s": report["global_batch"] / report["step_ms_median"] * 1e3}


def torch(python: str, flags: list[str], batch: int, threads: int, steps: int, best: bool) -> dict:
    line = [python, PEER, *flags, "-b", str(batch), "--threads", str(threads), "--steps", str(steps)]
    if best:
        return json.loads(output_of([*line, "--channels-last"], TCMALLOC))
    return json.loads(output_of(line))


def torch_ddp(python: str, batch: int, steps: int) -> dict:
    line = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", PEER, *R18, "-b", str(batch)]
    return json.loads(output_of([*line, "--threads", "1", "--steps", str(steps), "--channels-last", "--ddp"], TCMALLOC))


def summary(kept: list[dict], ours: str, theirs: str) -> dict:
    """Both sides' medians, and how they compare."""
    def of(side: str, figure: str) -> list[float]:
        return [results[side][figure] for results in kept]

    result = {"speed": ratio(of(ours, "images_per_s"), of(theirs, "images_per_s"))}
    for side in (ours, theirs):
        result[side] = {
            "images_per_s": round(statistics.median(of(side, "images_per_s")), 2),
            "peak_rss_mib": round(statistics.median(of(side, "peak_rss_mib"))),
        }
    result["memory_ratio"] = round(result[ours]["peak_rss_mib"] / result[theirs]["peak_rss_mib"], 3)
    return result


def over_torch(args: argparse.Namespace, part: str) -> dict:
    network, result = NETWORKS[part], origin("bench/resnet_speed.py")
    batch, steps, threads = args.batch or network["batch"], args.steps or network["steps"], result["cores"]
    result |= {"title": network["title"], "batch": batch, "steps": steps}
    for variant, rounds in (("best", args.pairs), ("stock", args.stock_pairs)):
        if rounds == 0:
            continue
        flags, rest = network["flags"], (batch, threads, steps)
        ours, theirs = BF16 if "bf16" in network else ([], [])
        programs = {
            "lockstep": lambda: lockstep(flags + ours, *rest),  # noqa: B023
            "torch": lambda: torch(args.python, flags + theirs, *rest, variant == "best"),  # noqa: B023
        }
        kept, others = run_rounds(programs, rounds, args.max_others, f"{part}, {variant}")
        result[variant] = summary(kept, "lockstep", "torch") | {"others_percent_max": round(max(others))}
        result["torch"] = kept[0]["torch"]["torch"]
    return result


def scaling(args: argparse.Namespace) -> dict:
    batch, steps = args.batch or 64, args.steps or NETWORKS["r18"]["steps"]
    programs = {
        "two_ranks": lambda: lockstep(R18, batch, 1, steps, ranks=2),
        "one_rank": lambda: lockstep(R18, batch, 1, steps),
    }
    kept, others = run_rounds(programs, args.pairs, args.max_others, "scaling")
    exposed = [results["two_ranks"]["comm_exposed_ms"] for results in kept]
    return origin("bench/resnet_speed.py") | {
        "title": "ResNet-18, CIFAR stem, 2 ranks of 1 thread over 1 rank of 1 thread",
        "batch": batch,
        "steps": steps,
        **summary(kept, "two_ranks", "one_rank"),
        "comm_exposed_ms": round(statistics.median(exposed), 1),
        "others_percent_max": round(max(others)),
    }


def ddp(args: argparse.Namespace, part: str) -> dict:
    batch, steps = args.batch or 64, args.steps or NETWORKS["r18"]["steps"]
    programs = {
        "lockstep": lambda: lockstep(R18, batch, 1, steps, ranks=2),
        "torch": lambda: torch_ddp(args.python, batch, steps),
    }
    kept, others = run_rounds(programs, args.pairs, args.max_others, part)
    isa = ", AVX2" if part.endswith("_avx2") else ""
    return origin("bench/resnet_speed.py") | {
        "title": f"ResNet-18, CIFAR stem{isa}, 2 ranks (PyTorch: DDP)",
        "batch": batch,
        "steps": steps,
        "best": summary(kept, "lockstep", "torch") | {"others_percent_max": round(max(others))},
        "torch": kept[0]["torch"]["torch"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="python3", metavar="PYTHON")
    parser.add_argument("--only", default="r18,r50,scaling,ddp", metavar="PARTS")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--stock-pairs", type=int, default=3, help="rounds against PyTorch without channels_last")
    parser.add_argument("--steps", type=int, help="measured in a run; by default 6, ResNet-50 3")
    parser.add_argument("--batch", type=int, help="images per rank, for a quick look")
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "resnet_cpu.json")
    args = parser.parse_args()
    for part in args.only.split(","):
        beside_torch = ddp if part.startswith("ddp") else over_torch
        measure = scaling if part == "scaling" else functools.partial(beside_torch, part=part)
        measure_part(args.output, part, functools.partial(measure, args))


if __name__ == "__main__":
    main()
