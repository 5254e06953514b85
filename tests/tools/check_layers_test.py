import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from check_layers import problems_of  # noqa: E402

ERROR = 'throw Error("what",  // --why\n            "try {} or "\n            "more");\n'


class Layers(unittest.TestCase):
    def test_an_include_that_points_up(self):
        self.assertEqual(problems_of("nn/a.cpp", '#include "core/error.h"\n'), [])
        self.assertEqual(len(problems_of("nn/a.cpp", '#include "comm/die.h"\n')), 1)

    def test_only_inspect_and_tests_include_inspect(self):
        for name in ("inspect/cli/a.cpp", "tests/inspect/a.cpp"):
            self.assertEqual(problems_of(name, '#include "inspect/plan/a.h"\n'), [])
        for folder in ("trainers", "engine", "bench"):
            self.assertEqual(len(problems_of(f"{folder}/a.cpp", '#include "inspect/plan/a.h"\n')), 1)

    def test_the_engine_leaves_to_programs_what_is_theirs(self):
        for line in ('std::getenv("A");', "raise(SIGKILL);", 'fmt::print("a");', "#include <nlohmann/json.hpp>"):
            self.assertEqual(len(problems_of("engine/a.cpp", line + "\n")), 1, line)
            self.assertEqual(problems_of("trainers/a.cpp", line + "\n"), [])
        self.assertEqual(problems_of("engine/a.cpp", "// calls exit(1)\n"), [])

    def test_an_example_sees_what_is_installed(self):
        self.assertEqual(problems_of("examples/a/main.cpp", '#include <lockstep/nn/layers.h>\n#include "a.h"\n'), [])
        self.assertEqual(len(problems_of("examples/a/main.cpp", '#include "nn/layers.h"\n')), 1)

    def test_a_library_outside_its_home(self):
        self.assertEqual(problems_of("data/codecs/png.cpp", "#include <png.h>\n"), [])
        self.assertEqual(len(problems_of("data/idx.cpp", "#include <png.h>\n")), 1)

    def test_a_literal_that_names_a_flag(self):
        for advice in ("--device cpu", "-b", "a batch (-b)", "--unused=zero", '\\"--data\\"', "a; -b", "x: --data"):
            text = ERROR.replace("{}", advice)
            for folder in ("core", "kernels", "nn", "comm", "data"):
                self.assertEqual(len(problems_of(f"{folder}/a.cpp", text)), 1, advice)
            for folder in ("trainers", "bench", "tests"):
                self.assertEqual(problems_of(f"{folder}/a.cpp", text), [])

    def test_a_flag_that_begins_in_one_literal_and_ends_in_the_next(self):
        self.assertEqual(len(problems_of("comm/a.cpp", 'f("see --stall"\n  "-abort");\n')), 1)

    def test_what_is_no_flag_of_ours(self):
        for advice in (
            "cmake --preset release -DLOCKSTEP_CUDA=ON", "nvidia-smi -L", "srun --mpi=pmix", "x86-64-v2", "a -- b",
            "a - b", "{}-{}", "(docker --ipc=host --pid=host)", "LOCKSTEP_ISA=v2", "cuda-11", "-1", "a-b",
        ):
            self.assertEqual(problems_of("core/a.cpp", ERROR.replace("{}", advice)), [], advice)

    def test_another_programs_flags_excuse_no_flag_of_ours(self):
        text = ERROR.replace("{}", "nvidia-smi -L, another mask, or --device cpu")
        self.assertEqual(problems_of("core/a.cpp", text), [
            "core/a.cpp: a literal names the flag --device, which is a program's to say"])


if __name__ == "__main__":
    unittest.main()
