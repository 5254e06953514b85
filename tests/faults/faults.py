#!/usr/bin/env python3
"""usage: tests/faults/faults.py BIN_DIR [--seed N] [--seconds S] [--counts] [FAULT...]

Trains with one fault each: first with the faults of FOUND, then with others chosen by a seed, for S seconds of
processor time (12); or only the faults given as arguments, such as "save,0,write,3,error:28". Each training must end
with exit code 0 and the undisturbed digest, or with a documented exit code and a message. A second training continues
from its files and must reach the undisturbed digest and leave no other files. --counts only prints the number of calls
that can be disturbed. tests/long/faults.py tries all calls of a save.
"""

import argparse
import random
import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))
from fault_jobs import PHASES, Fault, Jobs, seconds_of_children  # noqa: E402

# Found by tests/long/faults.py: small system files that cannot be read, and allocations that fail while flags are
# parsed.
FOUND = [f"{phase},read,{at},error:5" for phase in ("resume,0", "start-tcp,1") for at in range(1, 8)]
FOUND += [f"resume,0,malloc,{at},error:12" for at in (24264, 27098, 30160, 32455)]


AT_ONCE = 3  # most of a fault's time is a rank's wait for another that is gone


def faults_of(args: argparse.Namespace, jobs: Jobs):
    """The faults to try, in order."""
    if args.faults:
        yield from map(Fault.parse, args.faults)
        return
    print(f"seed {args.seed}: tests/faults/faults.py {args.bin_dir} --seed {args.seed}", flush=True)
    rng = random.Random(args.seed)
    yield from map(Fault.parse, FOUND)
    while seconds_of_children() < args.seconds:
        yield jobs.at_random(rng)


def problems_of(faults, jobs: Jobs):
    """Tries the faults, AT_ONCE at a time. Yields each with the promise that it broke, or ''."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = {}
        for fault in faults:
            tried[pool.submit(jobs.check, fault)] = fault
            while len(tried) >= AT_ONCE:
                for ended in wait(tried, return_when=FIRST_COMPLETED).done:
                    yield tried.pop(ended), ended.result()
        for ended, fault in tried.items():
            yield fault, ended.result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=Path)
    parser.add_argument("faults", nargs="*")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--counts", action="store_true")
    args = parser.parse_args()
    jobs = Jobs(args.bin_dir)
    tried = broken = 0
    try:
        jobs.prepare(sorted({Fault.parse(text).phase for text in args.faults}) or list(PHASES))
        if args.counts:
            for phase, ranks in jobs.counts.items():
                for rank, counts in enumerate(ranks):
                    print(f"{phase} rank {rank}: " + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n > 0))
            return 0
        for fault, problem in problems_of(faults_of(args, jobs), jobs):
            tried += 1
            if problem:
                broken += 1
                print(f"{fault}: {problem}", flush=True)
    finally:
        jobs.close()
    print(f"{tried} faults tried in {seconds_of_children():.1f} s of processor time, {broken} broke a promise")
    return 1 if broken or tried == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
