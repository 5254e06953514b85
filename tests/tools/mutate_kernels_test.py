import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from mutate_kernels import drawn, has_no_effect, masked, mutations_of  # noqa: E402

KERNEL = """\
// a < b, rows[i]
#include <cuda.h>
template <int n, class T>
__global__ void kernel(const float* in, float* out, int64_t count) {
  __shared__ float sums[kWarps];
  const float* from[2] = {in, in};
  for (int64_t i = thread; i < count; i += threads) out[i] = "x < y"[0];
  for (int offset = 16; offset > 0; offset /= 2) step(offset);
  for (int k = 0; k < n; ++k) sums[k * kRow + 1] = 0;
  __syncthreads();
  if (a == b) store_pack<n>(out + first, pack);
  __syncwarp(mask);
}
"""


def changes(kind: str) -> list[str]:
    file = Path("a.cu")
    found = [m for m in mutations_of(file, KERNEL) if m.kind == kind]
    return [m.applied(KERNEL).splitlines()[m.line(KERNEL) - 1].strip() for m in found]


class MutateKernels(unittest.TestCase):
    def test_comparisons_outside_comments_literals_and_template_heads(self):
        self.assertEqual(
            changes("comparison"),
            [
                'for (int64_t i = thread; i <= count; i += threads) out[i] = "x < y"[0];',
                "for (int offset = 16; offset >= 0; offset /= 2) step(offset);",
                "for (int k = 0; k <= n; ++k) sums[k * kRow + 1] = 0;",
                "if (a != b) store_pack<n>(out + first, pack);",
            ],
        )

    def test_the_lesser_of_two_has_no_other_comparison(self):
        text = "m = a.b < kC ? a.b : kC;\nn = (sizeof(T) * k < 16 ? sizeof(T) * k : 16);\no = a < b ? a : c;\n"
        mutations = mutations_of(Path("a.cu"), text)
        self.assertEqual([m.line(text) for m in mutations if not has_no_effect(m, text)], [3])

    def test_indexes_but_no_declarations(self):
        self.assertEqual(
            changes("index"),
            [
                'for (int64_t i = thread; i < count; i += threads) out[i + 1] = "x < y"[0];',
                "for (int k = 0; k < n; ++k) sums[(k * kRow + 1) + 1] = 0;",
                "if (a == b) store_pack<n>(out + (first + 1), pack);",
            ],
        )

    def test_barriers_are_removed(self):
        self.assertEqual(changes("barrier"), [";", ";"])

    def test_strides_of_loops_and_rows(self):
        self.assertEqual(
            changes("stride"),
            [
                'for (int64_t i = thread; i < count; i += (threads) * 2) out[i] = "x < y"[0];',
                "for (int offset = 16; offset > 0; offset /= 2 * 2) step(offset);",
                "for (int k = 0; k < n; k += 2) sums[k * kRow + 1] = 0;",
                "for (int k = 0; k < n; ++k) sums[k * (kRow + 1) + 1] = 0;",
            ],
        )

    def test_draws_all_once_in_an_order_of_the_seed(self):
        every = mutations_of(Path("a.cu"), KERNEL)
        self.assertEqual(set(drawn(every, 1)), set(every))
        self.assertEqual(list(drawn(every, 1)), list(drawn(every, 1)))
        self.assertNotEqual(list(drawn(every, 1)), list(drawn(every, 2)))

    def test_masking_keeps_places(self):
        self.assertEqual(len(masked(KERNEL)), len(KERNEL))


if __name__ == "__main__":
    unittest.main()
