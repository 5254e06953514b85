"""The accuracy of `--preset cifar-94` over seeds. Writes bench/results/cifar94_seeds.json.

usage: python3 bench/cifar94_seeds.py DIR [--seeds 10] [--at-once 2] [--runs FOLDER]

DIR holds CIFAR-10. Seeds that the results have are not run again, so the script may be stopped and started: the runs in
FOLDER go on from their checkpoints. --at-once runs are under way together and share the cores; a run of one thread
takes about 50 minutes. The accuracy is that of the evaluation at the end, over six views.
"""

import argparse
import json
import statistics
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, merge_result, origin, output_of


def correct_images(record: dict) -> int | None:
    """Right answers of a run that has ended, from its run.json."""
    return record["final"]["correct"] if record["exit_code"] == 0 else None


def train(data: str, seed: int, threads: int, runs: Path) -> int:
    """Right answers of the seed's run, which begins or goes on unless it has ended."""
    run = runs / str(seed)

    def correct() -> int | None:
        return correct_images(json.loads((run / "run.json").read_text()))

    if not (run / "run.json").exists() or correct() is None:
        line = [str(PROGRAMS / "train_resnet"), data, "--dataset", "cifar10", "--preset", "cifar-94"]
        output_of([*line, "--seed", str(seed), "--threads", str(threads), "-o", str(run), "--resume", "auto"])
    return correct()


def summary(correct: dict[str, int]) -> dict:
    """Correct images of 10,000 by seed, in the seeds' order, and their distribution."""
    values = list(correct.values())
    return {
        "correct": {seed: correct[seed] for seed in sorted(correct, key=int)},
        "mean": round(statistics.mean(values), 1),
        "deviation": round(statistics.stdev(values), 1) if len(values) > 1 else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", metavar="DIR")
    parser.add_argument("--seeds", type=int, default=10, help="0 to SEEDS - 1")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path("cifar94_seeds"), metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "cifar94_seeds.json")
    args = parser.parse_args()
    result = origin("bench/cifar94_seeds.py")
    known = json.loads(args.output.read_text())["correct"] if args.output.exists() else {}
    left = [seed for seed in range(args.seeds) if str(seed) not in known]
    threads = max(1, result["cores"] // args.at_once)
    with ThreadPoolExecutor(args.at_once) as pool:
        started = {pool.submit(train, args.data, seed, threads, args.runs): seed for seed in left}
        try:
            for done in as_completed(started):
                known[str(started[done])] = done.result()
                merge_result(args.output, result | summary(known))
        except BaseException:  # Ctrl-C too: begin no other seed
            pool.shutdown(cancel_futures=True)
            raise


if __name__ == "__main__":
    main()
