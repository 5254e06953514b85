"""All-reduce on this CPU, in place, f32: against Open MPI and gloo. Writes bench/results/allreduce_cpu.json.

usage: python3 bench/allreduce_speed.py [--ranks 2 8] [--rounds 5] [--peer-mpi SOURCE.c] [--peer-gloo 'PYTHON SCRIPT']

A round runs every program once, one after another, so that all see the same machine: A B C A B C ... Each program
reports the median over its iterations of the slowest rank's time. A ratio is that of the medians over rounds. A round
in which other processes used more than --max-others percent of a core is thrown away and run
again, at most as often as --rounds says.

The MPI peer is compiled with mpicc and started like our own program; the gloo peer is called with the number of ranks.
Both print "... bytes=N median_us=T ..." for each size.
"""

import argparse
import json
import re
import shlex
import statistics
import subprocess
import tempfile
from pathlib import Path

from side_by_side import PROGRAMS, RESULTS, on_ranks, origin, output_of, ratio, run_rounds

PROGRAM = PROGRAMS / "bench_allreduce"
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
ITERATIONS = {2**12: 200, 2**18: 60, 2**20: 40, 25 * 2**20: 11, 100 * 2**20: 7}  # as the peers'

Times = dict[int, float]  # bytes -> microseconds


def parse_size(text: str) -> int:
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def size_text(size: int) -> str:
    for unit in ("G", "M", "K"):
        if size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]} {unit}B"
    return f"{size} B"


def start_ranks(ranks: int, line: list[str]) -> str:
    return subprocess.run(on_ranks(ranks, line), check=True, capture_output=True, text=True).stdout


def lockstep(ranks: int, sizes: list[int], more: list[str]) -> Times:
    """Fails when a sum is wrong, as bench_allreduce does."""
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            file = Path(folder, "out.json")
            line = ["-b", str(size), "-e", str(size), "-n", str(ITERATIONS.get(size, 20)), "-w", "3", "-J", str(file)]
            start_ranks(ranks, [str(PROGRAM), *line, *more])
            times[size] = json.loads(file.read_text())["results"][0]["in_place_per_iter"]["p50_us"]
    return times


def times_printed(text: str) -> Times:
    """The last line of a size counts: the MPI peer reports separate buffers first, then in place."""
    return {int(size): float(us) for size, us in re.findall(r"bytes=(\d+) median_us=([\d.]+)", text)}


def gloo(command: str, ranks: int) -> Times:
    line = [*shlex.split(command), str(ranks)]
    return times_printed(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def summary(kept: list[dict], ranks: int, size: int) -> dict:
    ours = [times["lockstep"][size] for times in kept]
    result = {"ranks": ranks, "bytes": size, "lockstep_us": round(statistics.median(ours), 2)}
    for peer in [name for name in kept[0] if name != "lockstep"]:
        theirs = [times[peer][size] for times in kept]
        result[f"{peer}_us"] = round(statistics.median(theirs), 2)
        result[f"{peer}_ratio"] = ratio(theirs, ours)
    return result


def describe_peers(args: argparse.Namespace) -> dict:
    peers = {}
    if args.peer_mpi:
        peers["open_mpi"] = output_of(["mpirun", "--version"]).splitlines()[0].replace("mpirun (Open MPI)", "Open MPI")
    if args.peer_gloo:
        python = shlex.split(args.peer_gloo)[0]
        peers["gloo"] = "PyTorch " + output_of([python, "-c", "import torch; print(torch.__version__)"])
    return peers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--sizes", type=parse_size, nargs="+", default=list(ITERATIONS), metavar="SIZE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-others", type=float, default=15, metavar="PERCENT")
    parser.add_argument("--peer-mpi", metavar="SOURCE.c")
    parser.add_argument("--peer-gloo", metavar="COMMAND")
    parser.add_argument("--bench-flags", default="", help="more flags of bench_allreduce, in one string")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "allreduce_cpu.json")
    args = parser.parse_args()

    more = shlex.split(args.bench_flags)
    results, others = [], []
    with tempfile.TemporaryDirectory() as folder:
        peer_program = str(Path(folder, "peer_mpi"))
        if args.peer_mpi:
            subprocess.run(["mpicc", "-O3", "-march=native", "-w", "-o", peer_program, args.peer_mpi], check=True)
        for ranks in args.ranks:
            programs = {"lockstep": lambda: lockstep(ranks, args.sizes, more)}  # noqa: B023
            if args.peer_mpi:
                programs["open_mpi"] = lambda: times_printed(start_ranks(ranks, [peer_program]))  # noqa: B023
            if args.peer_gloo:
                programs["gloo"] = lambda: gloo(args.peer_gloo, ranks)  # noqa: B023
            kept, shares = run_rounds(programs, args.rounds, args.max_others, f"{ranks} ranks")
            results += [summary(kept, ranks, size) for size in args.sizes]
            others += shares
    for row in results:
        ratios = ", ".join(f"{name[:-6]} {row[name]['ratio']}x" for name in row if name.endswith("_ratio"))
        print(f"{row['ranks']} ranks, {size_text(row['bytes'])}: {row['lockstep_us']} us; {ratios}")

    report = {
        **origin("bench/allreduce_speed.py"),
        "rounds": args.rounds,
        "others_percent_max": round(max(others)),
        "bench_flags": args.bench_flags,
        "peers": describe_peers(args),
        "results": results,
    }
    args.output.write_text(json.dumps(report, indent=2) + "\n")
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
