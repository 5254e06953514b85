"""tools/check_limits.py against sources that exceed a limit, and such that only look as if they did."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from check_limits import LINES, MEMBERS, PARAMETERS, main, problems_of  # noqa: E402

SEVEN = ", ".join(f"int p{i}" for i in range(PARAMETERS + 1))
SIX = ", ".join(f"int p{i}" for i in range(PARAMETERS))


class CheckLimits(unittest.TestCase):
    def finds(self, text: str, *wanted: str) -> None:
        found = problems_of("x.h", f"namespace a::b {{\n{text}\n}}  // namespace a::b\n")
        self.assertEqual([line.split(": ", 1)[1] for line in found], list(wanted))

    def test_the_tree_keeps_the_limits(self) -> None:
        self.assertEqual(main(), 0)

    def test_parameters(self) -> None:
        for form in (
            f"void f({SEVEN});",
            f"void f({SEVEN}) {{}}",
            f"template <class T, int n = 2>\n[[nodiscard]] T f({SEVEN}) const noexcept;",
            f"using f = void({SEVEN});",
            f"struct A {{\n  explicit f({SEVEN}) : a_{{p0}}, b_(p1) {{ g(); }}\n}};",
            f"extern \"C\" {{\nvoid f({SEVEN});\n}}",
            f"LS_DECLARE_OP(Signature, name)\nvoid f({SEVEN});",
            f"__global__ void __launch_bounds__(kThreads) f({SEVEN}) {{}}",
        ):
            with self.subTest(form=form):
                self.finds(form, "f: 7 parameters, 6 allowed")

    def test_where_it_is(self) -> None:
        self.assertEqual(problems_of("x.h", f"// a\n\nvoid f(\n    {SEVEN});"), ["x.h:3: f: 7 parameters, 6 allowed"])

    def test_operators(self) -> None:
        self.finds(f"struct A {{\n  void operator()({SEVEN}) const;\n}};", "): 7 parameters, 6 allowed")

    def test_what_is_no_parameter(self) -> None:
        for form in (
            f"void f({SIX});",
            "void f(std::map<int, std::pair<int, int>> a, int b = g(1, 2, 3), A c = {1, 2, 3, 4}, int d, int e);",
            f"// void f({SEVEN});\n/* void f({SEVEN}); */",
            f'const char* text = "void f({SEVEN})";',
            f"void f() {{\n  call({SEVEN});\n  const auto g = []({SEVEN}) {{}};\n}}",
            f"#define F({SEVEN}) \\\n  void f({SEVEN});",
            "const int a = f(1, 2, 3, 4, 5, 6, 7, 8);",
            "bool less = 1 < 2, more = f(1, 2, 3, 4, 5, 6, 7);",
        ):
            with self.subTest(form=form):
                self.finds(form)

    def test_lines(self) -> None:
        body = "  g();\n" * (LINES - 2)
        self.finds(f"void f() {{\n{body}}}")
        self.finds(f"void f() {{\n  g();\n{body}}}", "f: 61 lines, 60 allowed")
        self.finds(f"A::A()\n    : a_{{1}},\n      b_(2) {{\n{body}}}", "A: 62 lines, 60 allowed")

    def test_members(self) -> None:
        members = "".join(f"  std::map<int, int> m{i} = {{{{1, 2}}}};\n" for i in range(MEMBERS))
        rest = (
            " public:\n  A(int a, int b);\n  int f() const { return 1; }\n  static constexpr int kOne = 1;\n"
            "  static int shared;\n  enum class E { kA, kB, kC };\n  struct B {\n    int x, y, z;\n  };\n"
            "  using C = int;\n  friend class D;\n  template <class T>\n  void g();\n"
        )
        self.finds(f"class A final : public Base<int> {{\n{rest}{members}}};")
        self.finds(f"class A {{\n{rest}{members}  int a;\n}};", "class A: 13 data members, 12 allowed")
        self.finds(f"struct A {{\n{members}  int a = 1, b = 2;\n}};", "class A: 14 data members, 12 allowed")


if __name__ == "__main__":
    unittest.main()
