"""Times our training step and PyTorch's in turn on a GPU: a row of steps_cuda.json.

usage: python3 bench/gpu_step_speed.py RESULTS COMMIT NAME --ours LINE --peer LINE [--rounds 3] [--alone]

Both lines print one JSON object with "images_per_s" and "step_ms_median". They run as A B A B; the row holds medians
and the ratio over rounds. A peer that fails is named in the row, and ours is still measured. --alone: no peer.
"""

import argparse
import json
import shlex
import statistics
from pathlib import Path

from gpu_results import add_figures, gpu_origin, known_of
from side_by_side import merge_result, output_of, ratio

HOST_OF_GRAPH = "host_ms_mean"


def measured(line: str) -> dict:
    return json.loads(output_of(shlex.split(line)).splitlines()[-1])


def row_of(ours: list[dict], peers: list[dict], failure: str) -> dict:
    row = {
        "images_per_s": round(statistics.median(run["images_per_s"] for run in ours), 1),
        "step_ms": round(statistics.median(run["step_ms_median"] for run in ours), 3),
        "host_ms": round(statistics.median(run[HOST_OF_GRAPH] for run in ours), 4),
        "rounds": len(ours),
    }
    if failure:
        row["peer_failed"] = failure
    elif peers:
        speeds = [[run["images_per_s"] for run in runs] for runs in (ours, peers)]
        row |= {
            "peer": f"PyTorch {peers[0]['torch']}",
            "peer_images_per_s": round(statistics.median(speeds[1]), 1),
            "over_peer": ratio(*speeds),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("commit")
    parser.add_argument("name")
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", action="store_true")
    args = parser.parse_args()
    ours, peers, failure = [], [], ""
    file = args.results / "steps_cuda.json"
    for _ in range(args.rounds):
        ours.append(measured(args.ours))
        try:
            if not args.alone and not failure:
                peers.append(measured(args.peer))
        except (RuntimeError, ValueError, IndexError) as error:
            failure = str(error).strip().splitlines()[-1][:300]
        row = row_of(ours, peers, failure)
        origin = gpu_origin(args.commit)
        merge_result(file, origin | {"steps": known_of(file, "steps", origin) | {args.name: row}})
    figures = {f"images_per_s_{args.name}": row["images_per_s"], f"host_ms_{args.name}": row["host_ms"]}
    if "over_peer" in row:
        figures[f"over_torch_{args.name}"] = row["over_peer"]["ratio"]
    add_figures(args.results, args.commit, figures)


if __name__ == "__main__":
    main()
