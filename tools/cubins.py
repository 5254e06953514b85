"""Reads the compiled kernels from the cubins in a library, by NVIDIA's cuobjdump.

scripts/setup.sh test puts cuobjdump and nvdisasm, which it needs beside it, into build/tools.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

MEMBER = re.compile(r"^member .*:(.+?)(?:\.cu)?\.o:$")
ARCH = re.compile(r"^arch = sm_(\d+)")
RESOURCE_FUNCTION = re.compile(r"^ Function (\S+):$")
RESOURCES = re.compile(r"^  REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+) ")
TOOLKIT = re.compile(r"\btoolkit=([\d.]+)")
INFO_SECTION = re.compile(r"^\.nv\.info\.(\S+)")
MAX_THREADS = re.compile(r"^\s+Value:\s+0x([0-9a-f]+) 0x([0-9a-f]+) 0x([0-9a-f]+)")
SASS_FUNCTION = re.compile(r"^\s+Function : (\S+)")
SHARED_RESERVED = 1 << 10  # bytes that the system takes of each block's shared memory
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@\S+\s+)?([A-Z][\w.]*)")


class CudaToolsMissing(Exception):
    """cuobjdump is missing; the text says how to get it."""


@dataclass
class Kernel:
    """One kernel compiled for one architecture. `sm`: 90 for sm_90; `threads`: of __launch_bounds__, 0 without."""

    name: str
    sm: int
    registers: int = 0
    stack: int = 0
    shared: int = 0
    local: int = 0
    threads: int = 0
    instructions: list[str] = field(default_factory=list, repr=False)


def cuobjdump(*arguments: str) -> str:
    """The output of cuobjdump. Raises CudaToolsMissing."""
    found = sorted((ROOT / "build" / "tools").glob("nvidia/*/bin/cuobjdump"))
    tool = str(found[-1]) if found else shutil.which("cuobjdump")
    if tool is None:
        raise CudaToolsMissing(
            "no cuobjdump: it is in build/tools after `scripts/setup.sh test`, which takes it from PyPI "
            "by python3's pip, or on PATH where the whole CUDA toolkit is installed"
        )
    path = f"{Path(tool).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode != 0:
        raise CudaToolsMissing(f"{tool} {' '.join(arguments)} failed:\n{done.stderr.strip()}")
    return done.stdout


def demangled(symbols: Iterable[str]) -> dict[str, str]:
    """Symbol -> name without parameters, this project's namespaces and casts."""
    symbols = list(symbols)
    lines = subprocess.run(
        ["c++filt", "-p"], input="\n".join(symbols), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {symbol: short_name(line) for symbol, line in zip(symbols, lines, strict=True)}


def short_name(name: str) -> str:
    name = name.replace("(anonymous namespace)::", "").replace(" >", ">")
    return re.sub(r"\b(?:lockstep|kernels|cuda)::", "", name).removeprefix("void ")


def read_kernels(library: Path, instructions: bool = True) -> tuple[list[Kernel], str]:
    """All kernels of the library, sorted by name and architecture, and the version of the toolkit that made them.

    A kernel's name is "<unit>: <function>" (cmake/LockstepCudaUnits.cmake). Without `instructions` those are left out,
    which is fast. Raises CudaToolsMissing, or ValueError where two kernels have one name.
    """
    kernels: dict[tuple[str, str, int], Kernel] = {}
    listing = cuobjdump("-res-usage", str(library))
    names = demangled(RESOURCE_FUNCTION.sub(r"\1", line) for line in listing.splitlines() if line.startswith(" Func"))
    for member, sm, symbol, line in functions_in(listing, RESOURCE_FUNCTION):
        if match := RESOURCES.match(line):
            registers, stack, shared, local = map(int, match.groups())
            if sm >= 90 and shared > 0:
                shared -= SHARED_RESERVED  # counted there, and only there
            kernels[member, symbol, sm] = Kernel(f"{member}: {names[symbol]}", sm, registers, stack, shared, local)

    elf = cuobjdump("-elf", str(library))
    attribute = ""
    for member, sm, symbol, line in functions_in(elf, INFO_SECTION):
        if "Attribute:" in line:
            attribute = line.split()[-1]
        elif attribute == "EIATTR_MAX_THREADS" and (match := MAX_THREADS.match(line)):
            x, y, z = (int(value, 16) for value in match.groups())
            kernels[member, symbol, sm].threads = x * y * z

    sass = cuobjdump("-sass", str(library)) if instructions else ""
    for member, sm, symbol, line in functions_in(sass, SASS_FUNCTION):
        if match := INSTRUCTION.match(line):
            kernels[member, symbol, sm].instructions.append(match[1])

    found = sorted(kernels.values(), key=lambda kernel: (kernel.name, kernel.sm))
    for first, second in zip(found, found[1:]):
        if (first.name, first.sm) == (second.name, second.sm):
            raise ValueError(f"two kernels are called {first.name}: overloads need names of their own")
    versions = set(TOOLKIT.findall(elf))
    return found, ", ".join(sorted(versions))


def functions_in(listing: str, function: re.Pattern) -> Iterable[tuple[str, int, str, str]]:
    """(unit, architecture, symbol, line) for every line of a listing that belongs to a function."""
    member, sm, symbol = "", 0, ""
    for line in listing.splitlines():
        if match := MEMBER.match(line):
            member, symbol = match[1], ""
        elif match := ARCH.match(line):
            sm, symbol = int(match[1]), ""
        elif match := function.match(line):
            symbol = match[1]
        elif symbol:
            yield member, sm, symbol, line
