"""Computes how many warps of a kernel an SM holds at once, as NVIDIA's occupancy calculator does.

Source: CUDA C++ Programming Guide, "Compute Capabilities", technical specifications per compute capability.
"""

from cubins import SHARED_RESERVED

WARP = 32
MAX_WARPS, MAX_BLOCKS = 64, 32  # of an SM of compute capability 8.0, 9.0 and 10.0
REGISTERS = 65536  # of an SM, in four parts
SM_PARTS = 4
REGISTER_UNIT = 256  # a warp's registers are given in pieces of this many
SHARED_BYTES = {80: 164 << 10, 90: 228 << 10, 100: 228 << 10}  # of an SM
SHARED_UNIT = 128


def rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def resident_warps(sm: int, threads: int, registers: int, shared: int) -> int:
    """Warps of blocks of `threads` that an SM of architecture `sm` holds. Registers per thread, shared per block."""
    warps = -(-threads // WARP)
    warp_registers = rounded_up(max(registers, 1) * WARP, REGISTER_UNIT)
    warps_by_registers = REGISTERS // SM_PARTS // warp_registers * SM_PARTS
    block_shared = rounded_up(shared + SHARED_RESERVED, SHARED_UNIT)
    blocks = min(
        MAX_BLOCKS,
        MAX_WARPS // warps,
        warps_by_registers // warps,
        SHARED_BYTES[sm] // block_shared,
    )
    return blocks * warps
