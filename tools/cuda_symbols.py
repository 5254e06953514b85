"""Fails unless the kernels that nvcc compiled are those that the emulated tests ran.

usage: python3 tools/cuda_symbols.py LIBRARY TEST_CUDA_FAST KERNELS_RUN

KERNELS_RUN is what TEST_CUDA_FAST wrote with LOCKSTEP_EMULATION_KERNELS=KERNELS_RUN: a line for each kernel,
its address in the program, the most threads per block and the most dynamic shared memory it was launched with. Both are
held to what the compiled kernel allows on every architecture, since hardware would refuse such a launch.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cubins import SHARED_RESERVED, CudaToolsMissing, Kernel, demangled, read_kernels
from cuda_occupancy import SHARED_BYTES


@dataclass
class Run:
    """One kernel that the emulator ran: the largest of its launches."""

    name: str
    threads: int
    dynamic_shared: int


def functions_of(program: Path) -> dict[int, str]:
    """Address -> "<unit>: <symbol>" of a program's functions; the unit is empty for one that other units can see."""
    listing = subprocess.run(["readelf", "-sW", program], check=True, capture_output=True, text=True).stdout
    functions, unit = {}, ""
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) < 8:
            continue
        value, kind, binding, name = fields[1], fields[3], fields[4], fields[7]
        if kind == "FILE":
            unit = name.removesuffix(".cu")
        elif kind == "FUNC":
            functions[int(value, 16)] = f"{unit if binding == 'LOCAL' else ''}: {name}"
    return functions


def read_run(program: Path, kernels_run: Path) -> list[Run]:
    functions = functions_of(program)
    rows = [line.split() for line in kernels_run.read_text(encoding="utf-8").splitlines()]
    places = [functions.get(int(row[0], 16), f": {row[0]}").split(": ") for row in rows]
    names = demangled(symbol for _, symbol in places)
    return [
        Run(f"{unit}: {names[symbol]}", int(threads), int(shared))
        for (unit, symbol), (_, threads, shared) in zip(places, rows, strict=True)
    ]


def problems_of(compiled: list[Kernel], runs: list[Run]) -> list[str]:
    compiled_names, run_names = {kernel.name for kernel in compiled}, {run.name for run in runs}
    problems = [f"{name}: compiled, but no emulated test ran it" for name in sorted(compiled_names - run_names)]
    problems += [f"{name}: ran, but nvcc compiled no such kernel" for name in sorted(run_names - compiled_names)]
    largest = {run.name: run for run in runs}
    for kernel in compiled:
        if (run := largest.get(kernel.name)) is None:
            continue
        if kernel.threads and run.threads > kernel.threads:
            problems.append(f"{kernel.name} sm_{kernel.sm}: {run.threads} threads launched, bound to {kernel.threads}")
        shared, limit = kernel.shared + run.dynamic_shared, SHARED_BYTES[kernel.sm] - SHARED_RESERVED
        if shared > limit:
            problems.append(f"{kernel.name} sm_{kernel.sm}: {shared} bytes of shared memory a block, {limit} allowed")
    return problems


def main() -> int:
    library, program, kernels_run = map(Path, sys.argv[1:])
    try:
        compiled, _ = read_kernels(library, instructions=False)
    except CudaToolsMissing as missing:
        print(f"cuda_symbols: {missing}")
        return 1
    runs = read_run(program, kernels_run)
    problems = problems_of(compiled, runs)
    print("\n".join(problems) or f"{len(runs)} kernels were compiled and run")
    return 1 if problems or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
