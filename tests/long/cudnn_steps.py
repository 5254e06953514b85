#!/usr/bin/env python3
"""usage: tests/long/cudnn_steps.py

Steps of ResNet-20 and of a narrow ResNet-50 over the emulated machine's cuDNN, in f32 and in f16 with all fused forms:
the losses of 20 steps are the CPU's, within 2e-4 and 2e-2 of them; 1, 2 and 4 ranks and 10 orders of streams leave the
same bits; and a wrong result of cuDNN shows in f32. Writes tests/long/cudnn_steps.md. Needs
build/release/bin/cudnn_steps.
"""
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = {"resnet20": ("ResNet-20", 16), "narrow50": ("narrow ResNet-50", 48)}
LEVELS = {"O0": ("f32", 2e-4), "O2": ("f16", 2e-2)}
ORDERS = ["eager", "lazy"] + [f"random:{seed}" for seed in range(1, 9)]
STEPS, STEPS_OF_AN_ORDER = 20, 4  # the third is recorded, the fourth repeated


def run(network: str, level: str, steps: int, *, ranks: int = 1, streams: str = "lazy", cudnn: str = "on") -> list[str]:
    """The lines of a run: losses, then the weights' digest. cudnn "": on the CPU."""
    environment = {**os.environ, "LOCKSTEP_EMULATION_CUDNN": cudnn, "LOCKSTEP_EMULATION_STREAMS": streams,
                   "LOCKSTEP_EMULATION_DEVICES": "4"}
    command = [ROOT / "build/release/bin/cudnn_steps", network, level, "cuda" if cudnn else "cpu",
               str(NETWORKS[network][1]), str(steps)]
    if ranks > 1:
        command = [ROOT / "scripts/run", "-np", str(ranks), *command]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return [line for line in result.stdout.splitlines() if line.startswith(("loss ", "weights "))]


def farthest(got: list[str], want: list[str]) -> float:
    """The largest difference of two losses, over the wanted one."""
    pairs = [(float(a.split()[1]), float(b.split()[1])) for a, b in zip(got, want) if a.startswith("loss ")]
    return max(abs(a - b) / abs(b) if abs(a - b) < abs(b) else 1.0 for a, b in pairs)


def measure(network: str, level: str) -> tuple[str, bool]:
    """The row of a network and level, and whether all of it holds."""
    limit = LEVELS[level][1]
    on_cpu = run(network, level, STEPS, cudnn="")
    one = run(network, level, STEPS)
    difference = farthest(one, on_cpu)
    ranks = [count for count in (2, 4) if run(network, level, STEPS, ranks=count) == one]
    base = run(network, level, STEPS_OF_AN_ORDER)
    orders = [order for order in ORDERS if run(network, level, STEPS_OF_AN_ORDER, streams=order) == base]
    wrong = farthest(run(network, level, STEPS_OF_AN_ORDER, cudnn="wrong-result"), on_cpu)
    shows = wrong > limit or level != "O0"  # 16 bits hide it
    holds = (difference <= limit and ranks == [2, 4] and orders == ORDERS and shows and len(one) == STEPS + 1
             and base[:-1] == one[:STEPS_OF_AN_ORDER])
    cells = (NETWORKS[network][0], LEVELS[level][0], f"{difference:.1e}", f"{limit:.0e}",
             ", ".join(map(str, [1] + ranks)), f"{len(orders)} of {len(ORDERS)}", f"{wrong:.1e}")
    return f"| {' | '.join(cells)} |", holds


def main() -> None:
    begin = time.time()
    rows, all_hold = [], True
    for network in NETWORKS:
        for level in LEVELS:
            row, holds = measure(network, level)
            print(row, flush=True)
            rows.append(row)
            all_hold = all_hold and holds
    minutes = (time.time() - begin) / 60
    verdict = "All hold." if all_hold else "NOT ALL HOLD."
    (ROOT / "tests/long/cudnn_steps.md").write_text(f"""# Training steps over the emulated cuDNN

`tests/long/cudnn_steps.py` wrote this: {STEPS} steps of 32 images in 4 shards, in f16 with all fused forms, beside
the CPU's steps. Differences are of a step's loss, over the CPU's. Orders of streams ran {STEPS_OF_AN_ORDER} steps:
two eager ones, one that is recorded, one that is repeated. A cuDNN that is wrong by little must show in f32; 16 bits
hide it. {verdict} It took {minutes:.0f} minutes beside other work.

| network | type | farthest loss | at most | ranks, same bits | orders, same bits | a wrong result is off by |
|---|---|---|---|---|---|---|
""" + "\n".join(rows) + "\n", encoding="utf-8")
    print(verdict)
    sys.exit(0 if all_hold else 1)


if __name__ == "__main__":
    main()
