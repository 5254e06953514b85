"""Writes the measured table between README.md's markers from bench/results/*.json.

usage: python3 tools/bench_table.py [--check]      --check: fail when README.md does not hold what the results say
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- measured: tools/bench_table.py -->", "<!-- /measured -->"


def rows(result: dict) -> list[str]:
    scaling, torch = result["two_ranks_over_one"], result["over_pytorch"]
    one, two = result["first_step_s_one_rank"], result["first_step_s_two_ranks"]
    return [
        "| ConvNet on MNIST, batch 32, f32 | Lockstep | PyTorch | ratio (min-max) |",
        "|---|---|---|---|",
        f"| images/s, {result['cores']} cores | {torch['a_images_per_s']:,} | {torch['b_images_per_s']:,} "
        f"| {torch['ratio_median']:.2f} ({torch['ratio_min']:.2f}-{torch['ratio_max']:.2f}) |",
        f"| process start to first step done | {one:.2f} s | {result['peer_first_step_s']:.2f} s "
        f"| {result['peer_first_step_s'] / one:.0f} |",
        f"| 2 ranks of 1 thread over 1 rank of 1 thread | {scaling['ratio_median']:.2f} "
        f"({scaling['ratio_min']:.2f}-{scaling['ratio_max']:.2f}), first step after {two:.2f} s | | |",
        "",
        f"{result['cpu']}, {result['cores']} cores, {result['date']}, commit {result['commit']}; peer: "
        f"{result['peer']} with tcmalloc; medians of {torch['pairs']} alternating pairs by `{result['script']}`.",
    ]


def main() -> int:
    result = json.loads((ROOT / "bench" / "results" / "convnet_cpu.json").read_text())
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    updated = head + "\n".join([BEGIN, *rows(result), END]) + rest.split(END)[1]
    if "--check" in sys.argv[1:]:
        if updated != text:
            print("README.md's table differs from bench/results: run python3 tools/bench_table.py")
        return 0 if updated == text else 1
    readme.write_text(updated, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
