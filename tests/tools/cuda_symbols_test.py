"""tools/cuda_symbols.py: what was compiled against what ran."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from cubins import Kernel  # noqa: E402
from cuda_symbols import Run, problems_of  # noqa: E402


class Symbols(unittest.TestCase):
    COMPILED = [Kernel("relu_cuda: forward", sm, threads=256, shared=4 << 10) for sm in (80, 90)]

    def test_equal_sets(self):
        self.assertEqual(problems_of(self.COMPILED, [Run("relu_cuda: forward", 256, 0)]), [])

    def test_a_kernel_that_no_test_ran(self):
        self.assertEqual(
            problems_of(self.COMPILED, []), ["relu_cuda: forward: compiled, but no emulated test ran it"]
        )

    def test_a_kernel_that_is_not_compiled_for_devices(self):
        runs = [Run("relu_cuda: forward", 32, 0), Run("add_cuda: forward", 32, 0)]
        self.assertEqual(
            problems_of(self.COMPILED, runs), ["add_cuda: forward: ran, but nvcc compiled no such kernel"]
        )

    def test_launches_that_hardware_would_refuse(self):
        problems = problems_of(self.COMPILED, [Run("relu_cuda: forward", 512, 160 << 10)])
        self.assertEqual(
            problems,
            [
                "relu_cuda: forward sm_80: 512 threads launched, bound to 256",
                "relu_cuda: forward sm_80: 167936 bytes of shared memory a block, 166912 allowed",
                "relu_cuda: forward sm_90: 512 threads launched, bound to 256",
            ],
        )


if __name__ == "__main__":
    unittest.main()
