"""ResNet-20 on CIFAR-10: learning curves against PyTorch's, and speed. Writes bench/results/cifar_resnet20.json.

usage: python3 bench/cifar_resnet20.py --data DIR [--only one_rank,two_ranks,speed] [--python PYTHON] [--epochs 5]

Batch 128, SGD 0.1 constant, momentum 0.9, weight decay 1e-4, crop out of 4 pixels of padding and flip. A curve is
inside when each epoch's mean training loss and number of right test images lie between those of PyTorch's three seeds,
widened by a third of their spread on both sides. PYTHON has torch; bench/peers/torch_cifar.py is its side of the speed,
in pieces of --steps steps in turn. A part that is measured replaces that part of the results alone.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, ROOT, TCMALLOC, merge_result, on_ranks, origin, output_of, ratio, run_rounds

PEER = str(ROOT / "bench" / "peers" / "torch_cifar.py")
BATCH = 128

# PyTorch 2.15.0, the same training, seeds 0, 1, 2, five epochs each, measured on 2 cores of an AMD EPYC (Zen 4).
REFERENCE = {
    "loss": [
        [1.7414, 1.1760, 0.9077, 0.7549, 0.6713],
        [1.6724, 1.1525, 0.9197, 0.7793, 0.6876],
        [1.5219, 1.0297, 0.8630, 0.7295, 0.6562],
    ],
    "correct": [
        [4889, 5508, 6988, 6298, 7674],
        [4830, 5648, 6815, 6837, 7276],
        [5442, 6744, 7054, 7264, 7540],
    ],
}


def band(curves: list[list[float]]) -> list[tuple[float, float]]:
    """The curves' extremes by epoch, each moved outward by a third of their distance."""
    extremes = [(min(values), max(values)) for values in zip(*curves)]
    return [(low - (high - low) / 3, high + (high - low) / 3) for low, high in extremes]


def curve_of(metrics: str) -> dict:
    """Mean training loss and number of right test images by epoch, from metrics.jsonl."""
    loss, correct = {}, {}
    for line in map(json.loads, metrics.splitlines()):
        if line["split"] == "train":
            loss[line["epoch"]] = line["loss_avg"]  # the last line of an epoch is the mean over all of it
        else:
            correct[line["epoch"]] = line["correct"]
    return {"loss": [loss[epoch] for epoch in sorted(loss)], "correct": [correct[epoch] for epoch in sorted(correct)]}


def beside_bands(curve: dict) -> dict:
    result = {}
    for name, values in curve.items():
        limits = band(REFERENCE[name])
        result[name] = [round(value, 4) for value in values]
        result[f"{name}_band"] = [[round(low, 4), round(high, 4)] for low, high in limits]
        result[f"{name}_inside"] = [low <= value <= high for value, (low, high) in zip(values, limits)]
    return result


def train(data: str, ranks: int, threads: int, more: list[str], folder: str) -> dict:
    """run.json, with the curve."""
    line = [str(PROGRAMS / "train_resnet"), data, "--dataset", "cifar10", "-a", "resnet20"]
    line += ["-b", str(BATCH // ranks), "--threads", str(threads), "--lr", "0.1", "--momentum", "0.9", "--wd", "1e-4"]
    line += ["--lr-scheduler", "const", "--warmup-epochs", "0", "-p", "100", "-o", f"{folder}/run", *more]
    output_of(on_ranks(ranks, line))
    record = json.loads(Path(folder, "run", "run.json").read_text())
    return record | {"curve": curve_of(Path(folder, "run", "metrics.jsonl").read_text())}


def learning(args: argparse.Namespace, part: str) -> dict:
    result = origin("bench/cifar_resnet20.py")
    ranks = 1 if part == "one_rank" else 2
    groups = ["--bn-groups", "1"] if ranks == 1 else ["--sync-bn"]
    more = ["--epochs", str(args.epochs), "--seed", str(args.seed), *groups, *args.flags.split()]
    with tempfile.TemporaryDirectory() as folder:
        record = train(args.data, ranks, max(1, result["cores"] // ranks), more, folder)
    result |= {"ranks": ranks, "seed": args.seed, "images_per_s": round(record["final"]["images_per_s"], 1)}
    result |= {"digest": record["digest"]} | beside_bands(record["curve"])
    inside = all(result["loss_inside"]) and all(result["correct_inside"])
    print(f"{part}: loss {result['loss']}, correct {result['correct']}: {'inside' if inside else 'OUTSIDE'}")
    return result | {"inside": inside}


def speed(args: argparse.Namespace) -> dict:
    result = origin("bench/cifar_resnet20.py")
    threads, steps = str(result["cores"]), str(args.steps)

    def ours() -> dict:
        with tempfile.TemporaryDirectory() as folder:
            more = ["--bn-groups", "1", "--max-steps", steps, *args.flags.split()]
            return train(args.data, 1, result["cores"], more, folder)["final"]

    def theirs() -> dict:
        line = [args.python, PEER, args.data, "--steps", steps, "--threads", threads, "-b", str(BATCH)]
        return json.loads(output_of(line, TCMALLOC))

    kept, others = run_rounds({"lockstep": ours, "torch": theirs}, args.pairs, args.max_others, "speed")
    speeds = {side: [results[side]["images_per_s"] for results in kept] for side in ("lockstep", "torch")}
    return result | {
        "torch": kept[0]["torch"]["torch"],
        "steps": args.steps,
        "lockstep_images_per_s": round(statistics.median(speeds["lockstep"]), 1),
        "torch_images_per_s": round(statistics.median(speeds["torch"]), 1),
        "speed": ratio(speeds["lockstep"], speeds["torch"]),
        "others_percent_max": round(max(others)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="DIR", help="with data_batch_1.bin ... test_batch.bin")
    parser.add_argument("--only", default="one_rank,two_ranks,speed", metavar="PARTS")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--python", default="python3", metavar="PYTHON")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--flags", default="", help="more flags of train_resnet, in one string")
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "cifar_resnet20.json")
    args = parser.parse_args()
    for part in args.only.split(","):
        merge_result(args.output, {part: speed(args) if part == "speed" else learning(args, part)})


if __name__ == "__main__":
    main()
