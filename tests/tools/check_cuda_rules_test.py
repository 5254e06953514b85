import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from check_cuda_rules import problems_of  # noqa: E402

SOUND = """\
// asm, volatile and <<< >>> in a comment
#include "core/cuda/launch.h"
namespace lockstep {
namespace {
template <class T>
__global__ void kernel(T* out) {
  __shared__ float sums[32];
  for (int i = 0; i < 3; ++i) { sums[i] = 0; }
}
__device__ __forceinline__ float twice(float x) { return 2 * x; }
template <class T>
__device__ const T* first(const T* x) { return x; }
}  // namespace
void host() { launch(kernel<float>); }
}  // namespace lockstep
"""


def lines_of(text: str) -> list[int]:
    return [int(problem.split(":")[1]) for problem in problems_of("a.cu", text)]


class CudaRules(unittest.TestCase):
    def test_sound_file(self):
        self.assertEqual(problems_of("a.cu", SOUND), [])

    def test_kernel_after_the_anonymous_namespace(self):
        text = SOUND.replace("void host()", "__global__ void late() {}\nvoid host()")
        self.assertEqual(lines_of(text), [14])

    def test_kernel_in_a_named_namespace_alone(self):
        self.assertEqual(lines_of(SOUND.replace("namespace {\n", "namespace b {\n")), [6, 7])

    def test_each_forbidden_thing(self):
        for line in (
            "asm(\"mov\");", "asm volatile(\"x\");", "kernel<<<1, 32>>>();", "extern __shared__ int a[];",
            "__threadfence();", "volatile int x = 0;", "__device__ int counter;", "__device__ float table[3];",
            "__device__ float* pointer = nullptr;", "std::vector<int> v;", "cooperative_groups::sync();",
            "#if defined(X)", "#ifdef X", "# ifndef X",
        ):
            text = SOUND.replace("  for (int i", f"{line}\n  for (int i")
            self.assertIn(8, lines_of(text), line)


if __name__ == "__main__":
    unittest.main()
