"""Decoding and augmenting photos on this CPU against torchvision. Writes bench/results/loader_cpu.json.

usage: python3 bench/loader_speed.py --data DIR/train --python PYTHON [--rounds 5]

PYTHON has torch and torchvision; bench/peers/torch_images.py is their side, bench_loader ours: RandomResizedCrop(224)
and flip of fully decoded files, two workers each. Programs run in turn; rounds with busy neighbors are run again.
"""

import argparse
import json
import statistics

from side_by_side import PROGRAMS, RESULTS, ROOT, merge_result, origin, output_of, ratio, run_rounds

PEER = str(ROOT / "bench" / "peers" / "torch_images.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--python", default="python3", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    args = parser.parse_args()

    def torchvision(pipeline: str):
        return lambda: json.loads(output_of([args.python, PEER, args.data, "--pipeline", pipeline]))

    ours = [str(PROGRAMS / "bench_loader"), "--data", args.data, "--workers", "2"]
    programs = {"lockstep": lambda: json.loads(output_of(ours)), "pil": torchvision("pil"), "v2": torchvision("v2")}
    kept, others = run_rounds(programs, args.rounds, args.max_others, "loader")
    speeds = {name: [results[name]["images_per_s"] for results in kept] for name in programs}
    result = {f"{name}_images_per_s": round(statistics.median(values)) for name, values in speeds.items()}
    result |= {f"over_{peer}": ratio(speeds["lockstep"], speeds[peer]) for peer in ("pil", "v2")}
    merge_result(
        RESULTS / "loader_cpu.json",
        origin("bench/loader_speed.py") | {"workers": 2, "others_percent_max": round(max(others))} | result,
    )


if __name__ == "__main__":
    main()
