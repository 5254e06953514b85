"""Each kernel of broken_kernels.cu breaks the rule it was written for, on every architecture, and nothing else.

usage: python3 tests/cuda/broken_kernels_test.py LIBRARY
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from cuda_resources import broken_rules  # noqa: E402
from cubins import CudaToolsMissing, read_kernels  # noqa: E402

NARROW = "no access of 16 bytes"
EXPECTED = {
    "local_array": ["of stack", "local memory is used: LDL, STL", NARROW],
    "spilled_registers": ["of stack", "local memory is used", NARROW],
    "float_atomic": ["atomics on floats, or a compare-and-swap loop: RED", NARROW],
    "float_atomic_in_shared": ["atomics on floats, or a compare-and-swap loop: ATOMS.CAST", NARROW],
    "no_launch_bounds": ["no __launch_bounds__", NARROW],
    "few_warps": ["16 resident warps an SM"],
    "narrow_accesses": [NARROW],
    "sound": [],
}
SM_90_ALONE = {"few_warps"}


def main() -> int:
    try:
        kernels, _ = read_kernels(Path(sys.argv[1]))
    except CudaToolsMissing as missing:
        print(missing)
        return 1
    wrong = []
    for kernel in kernels:
        name = kernel.name.split(": ")[1]
        expected = [] if name in SM_90_ALONE and kernel.sm != 90 else EXPECTED[name]
        found = broken_rules(kernel, streaming=True)
        if len(found) != len(expected) or not all(part in text for part, text in zip(expected, found)):
            wrong.append(f"{name} sm_{kernel.sm}: got {found}, expected {expected}")
    architectures = {kernel.sm for kernel in kernels}
    expected = len(architectures) * len(EXPECTED)
    if not kernels or len(kernels) != expected:
        wrong.append(f"got {len(kernels)} kernels, expected {expected} for {len(architectures)} architectures")
    print("\n".join(wrong) or f"{len(EXPECTED)} kernels have the expected findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
