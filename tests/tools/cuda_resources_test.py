"""tools/cuda_resources.py and what it stands on: occupancy, names, and what counts as worse."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
import cubins  # noqa: E402
import cuda_resources as resources  # noqa: E402
from cuda_occupancy import resident_warps  # noqa: E402


def kernel(name: str = "relu_cuda: forward<float>", **fields) -> cubins.Kernel:
    usual = {"sm": 90, "registers": 32, "threads": 256, "instructions": ["LDG.E.128", "STG.E.128"]}
    return cubins.Kernel(name, **{**usual, **fields})


def budget_of(*kernels: cubins.Kernel, not_streaming: dict | None = None) -> dict:
    return {
        "toolkit": "13.0",
        "not_streaming": not_streaming or {},
        "kernels": {resources.key_of(each): resources.entry_of(each) for each in kernels},
    }


class Occupancy(unittest.TestCase):
    def test_registers(self):
        warps = {n: resident_warps(90, 256, n, 0) for n in (32, 33, 40, 64, 65, 72, 73, 128, 255)}
        self.assertEqual(warps, {32: 64, 33: 48, 40: 48, 64: 32, 65: 24, 72: 24, 73: 24, 128: 16, 255: 8})

    def test_shared_memory(self):
        self.assertEqual(resident_warps(90, 128, 32, 48000), 16)
        self.assertEqual(resident_warps(80, 128, 32, 48000), 12)
        self.assertEqual(resident_warps(90, 1024, 32, 227 << 10), 32)
        self.assertEqual(resident_warps(90, 1024, 32, (227 << 10) + 1), 0)

    def test_blocks(self):
        self.assertEqual(resident_warps(90, 32, 16, 0), 32)
        self.assertEqual(resident_warps(90, 1024, 64, 0), 32)
        self.assertEqual(resident_warps(90, 96, 32, 0), 63)


class Names(unittest.TestCase):
    SYMBOL = (
        "_ZN8lockstep7kernels4cuda52_GLOBAL__N__f635396a_19_elementwise_cuda_cu_2abd0a4b18elementwise_kernel"
        "INS2_12ReluBackwardI6__halfEEEEvT_ll"
    )

    def test_nvcc_and_gcc_spell_a_kernel_alike(self):
        gcc = self.SYMBOL.replace("52_GLOBAL__N__f635396a_19_elementwise_cuda_cu_2abd0a4b", "12_GLOBAL__N_1")
        names = cubins.demangled([self.SYMBOL, gcc])
        self.assertEqual(set(names.values()), {"elementwise_kernel<ReluBackward<__half>>"})


class Budget(unittest.TestCase):
    def test_the_same_kernels_keep_it(self):
        self.assertEqual(resources.problems_of([kernel()], "13.0", budget_of(kernel())), [])

    def test_fewer_registers_are_welcome(self):
        self.assertEqual(resources.problems_of([kernel(registers=31)], "13.0", budget_of(kernel())), [])

    def test_worse(self):
        for worse, text in (
            (kernel(registers=33), "registers 32 -> 33, warps 64 -> 48"),
            (kernel(shared=4), "shared 0 -> 4"),
            (kernel(instructions=["LDG.E.128", "STG.E.64"]), "wide_stores 1 -> 0"),
        ):
            problems = resources.problems_of([worse], "13.0", budget_of(kernel()))
            self.assertEqual(problems, [f"relu_cuda: forward<float> sm_90: worse than its budget: {text}"])

    def test_another_toolkit_is_held_to_warps_but_not_to_registers(self):
        budget = budget_of(kernel(registers=30))
        self.assertEqual(resources.problems_of([kernel(registers=32)], "13.1", budget), [])
        self.assertEqual(len(resources.problems_of([kernel(registers=33)], "13.1", budget)), 1)

    def test_new_and_gone(self):
        problems = resources.problems_of([kernel("a: new")], "13.0", budget_of(kernel("a: old")))
        self.assertEqual(problems, ["a: new sm_90: new, has no budget", "a: old sm_90: gone, but has a budget"])

    def test_architectures_that_were_not_compiled_are_not_missed(self):
        budget = budget_of(kernel())
        budget["kernels"]["relu_cuda: forward<float> sm_80"] = budget["kernels"]["relu_cuda: forward<float> sm_90"]
        self.assertEqual(resources.problems_of([kernel()], "13.0", budget), [])
        self.assertEqual(resources.not_compiled(budget["kernels"], {"relu_cuda: forward<float> sm_90"}), ["sm_80"])

    def test_what_is_not_streaming_needs_a_reason_and_a_kernel(self):
        small = kernel("a: merge<float>", registers=128, instructions=["LDG.E"])
        self.assertEqual(len(resources.problems_of([small], "13.0", budget_of(small))), 2)
        named = budget_of(small, not_streaming={"a: merge<*": "a few KiB"})
        self.assertEqual(resources.problems_of([small], "13.0", named), [])
        named["not_streaming"]["a: gone"] = "?"
        self.assertEqual(resources.problems_of([small], "13.0", named), ["not_streaming names no kernel: a: gone"])


if __name__ == "__main__":
    unittest.main()
