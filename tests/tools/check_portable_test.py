"""tools/check_portable.py: what it finds in a file."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from check_portable import problems_of  # noqa: E402

CLEAN = """\
#include <cstring>
#if defined(__x86_64__) && !defined(LS_PORTABLE)
#include <immintrin.h>
#endif
// _mm_pause() in a comment, and "asm" in a text, are no code.
#if LS_ISA == 4
__m512i all(__m512i x) { return _mm512_abs_epi16(x); }
#elif defined(__x86_64__)
__m128i all(__m128i x) { return _mm_abs_epi16(x); }
#else
Words all(Words x);
#endif
"""


class CheckPortable(unittest.TestCase):
    def test_guarded_code_has_no_problem(self):
        self.assertEqual(problems_of("kernels/a.cpp", CLEAN), [])

    def test_code_outside_a_guard_is_found_with_file_and_line(self):
        for code in ("__m256i sum;", "_mm_pause();", "#include <emmintrin.h>", "__builtin_ia32_pause();",
                     '__builtin_cpu_supports("a");', '[[gnu::target("a")]] int f();', 'asm volatile("");'):  # fmt: skip
            for place in ("Words all(Words x);", "#include <cstring>"):
                found = problems_of("data/a.h", CLEAN.replace(place, code))
                self.assertEqual(len(found), 1, code)
                self.assertIn("outside #if defined(__x86_64__)", found[0])
        self.assertEqual(problems_of("a.h", CLEAN + "_mm_pause();\n")[0].split(": ")[0], "a.h:13")

    def test_a_guard_for_something_else_does_not_count(self):
        for guard in ("#if !defined(__x86_64__)", "#if LS_ISA == 2", "#ifdef __linux__"):
            self.assertEqual(len(problems_of("a.cpp", f"{guard}\n_mm_pause();\n#endif\n")), 1, guard)

    def test_options_of_the_build_have_one_place(self):
        text = "target_compile_options(a PRIVATE -march=x86-64-v3)"
        self.assertEqual(len(problems_of("bench/CMakeLists.txt", text)), 1)
        self.assertEqual(problems_of("cmake/LockstepTargets.cmake", text), [])


if __name__ == "__main__":
    unittest.main()
