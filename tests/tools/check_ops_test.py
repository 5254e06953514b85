import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from check_ops import check, ops_of  # noqa: E402

TYPE = "// Shapes: any. Errors: none.\nusing Twice = void(Stream& stream, const Tensor& in, Tensor& out);\n"
DECLARED = f"{TYPE}LS_DECLARE_OP(Twice, twice)\n"
FUSED = f"{TYPE}Twice twice;\nnamespace cuda {{\nTwice twice;\n}}  // namespace cuda\n"
PROTOTYPE = "// Shapes: any. Errors: none.\nvoid twice(Stream& stream, const Tensor& in,\n           Tensor& out);\n"
CASES = "const Cases kCases{.cpu = {kF32, {{1}}}, .cuda = {kF32, {{1}}}};\n"
FILES = {
    "kernels/pair/twice.cpp": "",
    "kernels/pair/twice_cpu.cpp": "",
    "kernels/pair/twice_cuda.cu": "",
    "tests/reference/twice.h": "",
    "tests/kernels/twice_test.cpp": "twice(stream, in, out);",
    "tests/cuda/twice_test.cpp": "",
    "bench/kernels/pair_bench.cpp": f"{CASES}kernels::twice(t.stream(), in, out);",
}


def header_of(declarations: str) -> str:
    return f"namespace lockstep::kernels {{\n{declarations}}}  // namespace lockstep::kernels\n"


class Ops(unittest.TestCase):
    def problems(self, declarations: str, changes: dict[str, str | None] | None = None) -> list[str]:
        """What twice.h lacks among FILES with these changes; None: no such file."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in ({"kernels/pair/twice.h": header_of(declarations)} | FILES | (changes or {})).items():
                if text is None:
                    continue
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return [line.removeprefix("kernels/pair/twice.h lacks ") for line in check(Path(folder))[0]]

    def test_complete_ops(self):
        for declarations in (DECLARED, FUSED, PROTOTYPE):
            self.assertEqual(self.problems(declarations), [])

    def test_each_file_is_missed(self):
        parts = ["checks", "a CPU body", "a CUDA body", "a reference", "a test", "a test on CUDA", "a benchmark"]
        for file, part in zip(FILES, parts, strict=True):
            self.assertIn(part, self.problems(DECLARED, {file: None}), file)

    def test_an_op_of_cuda_alone_needs_all_but_a_cpu_body(self):
        self.assertEqual(self.problems(FUSED, {"kernels/pair/twice_cpu.cpp": None}), [])
        for declarations in (FUSED, PROTOTYPE):
            self.assertEqual(self.problems(declarations, {"bench/kernels/pair_bench.cpp": None}), ["a benchmark"])

    def test_a_benchmark_without_cuda(self):
        cpu_alone = CASES.replace(", .cuda = {kF32, {{1}}}", "")
        for cases in (cpu_alone, CASES + cpu_alone, CASES.replace(".cuda = {kF32, {{1}}}", ".cuda = {}"), ""):
            bench = {"bench/kernels/pair_bench.cpp": f"{cases}twice(t.stream(), in, out);"}
            self.assertEqual(self.problems(DECLARED, bench), ["a benchmark on CUDA"], cases)

    def test_every_op_of_a_header_is_called(self):
        both = DECLARED + "LS_DECLARE_OP(Twice, thrice)\n"
        self.assertEqual(self.problems(both), ["a test of thrice", "a benchmark of thrice"])
        called = {name: text + "thrice(s, in, out)" for name, text in FILES.items() if text}
        self.assertEqual(self.problems(both, called), [])

    def test_ops_of_one_header_may_have_files_of_their_own(self):
        both = DECLARED + "// Spec: tests/reference/thrice.h\nLS_DECLARE_OP(Twice, thrice_forward)\n"
        own = {
            "tests/reference/thrice.h": "",
            "tests/kernels/thrice_test.cpp": "thrice_forward(s, in, out);",
            "tests/cuda/thrice_test.cpp": "",
            "bench/kernels/pair_bench.cpp": f"{CASES}twice(s, in, out); thrice_forward(s, in, out);",
        }
        self.assertEqual(self.problems(both, own), [])
        self.assertEqual(self.problems(both, own | {"tests/reference/thrice.h": None}), ["a reference"])
        own_header = {"kernels/pair/thrice.h": header_of("// Shapes: any. Errors: none.\nTwice thrice;\n" + TYPE)}
        self.assertIn("a test of thrice_forward", self.problems(both, own | own_header))
        uncalled = own | {"tests/kernels/thrice_test.cpp": ""}
        self.assertEqual(self.problems(both, uncalled), ["a test of thrice_forward"])

    def test_the_header_tells_shapes_and_errors(self):
        for line in ("Shapes:", "Errors:"):
            self.assertEqual(self.problems(DECLARED.replace(line, "")), [f"a line '{line}'"])

    def test_what_is_no_op(self):
        for text in (
            "struct Plan {\n  void twice(Stream& stream, Tensor& out);\n};\n",
            "namespace cudnn {\nvoid twice(Stream& stream, Tensor& out);\n}\n",
            "inline void helper() {\n  twice(stream, out);\n}\n",
            "inline void wait(Stream& stream) {\n  stream.wait();\n}\nShape twice_shape(const Tensor& in);\n",
            "void choose(Stream& stream, const Problem& problem);\n",
            "// void twice(Stream& stream, Tensor& out);\n",
        ):
            self.assertEqual(ops_of(header_of(text)), set(), text)
        of_a_library = header_of(PROTOTYPE).replace("lockstep::kernels", "lockstep::kernels::cudnn")
        self.assertEqual(ops_of(of_a_library), set())

    def test_an_op_with_a_body_in_its_header(self):
        text = header_of("inline void twice(Stream& s, Tensor& out) {\n  if (s) { f(); }\n}\n")
        self.assertEqual(ops_of(text), {"twice"})


if __name__ == "__main__":
    unittest.main()
