"""tools/check_docs.py: what it finds in a document."""

import sys
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import bench_table  # noqa: E402
import check_docs  # noqa: E402
import draw_figures  # noqa: E402
import draw_rooms  # noqa: E402

README = ROOT / "README.md"


class CheckDocs(unittest.TestCase):
    def test_a_true_document_has_no_problem(self):
        text = "[a](docs/running.md#data) `core/tree.h` `core/tree.{h}` `kernels/*/relu*` `kernels/conv`\n"
        table = '<img src="LICENSE">\n| ' + "a row " * 40
        self.assertEqual(check_docs.problems_of(README, text + table), [])

    def test_each_problem_is_named_with_file_and_line(self):
        for line, said in (
            ("[a](docs/nowhere.md)", "links to docs/nowhere.md"),
            ('<img src="docs/nothing.svg">', "links to docs/nothing.svg"),
            ("see `core/trees.h`", "names core/trees.h"),
            ("`core/{tree,bush}.h`", "names core/bush.h"),
            ("`tests/long/nothing.sh --flag`", "names tests/long/nothing.sh"),
            ("word " * 25, "125 columns"),
        ):
            found = check_docs.problems_of(README, f"title\n{line}\n")
            self.assertEqual(len(found), 1, line)
            self.assertIn(f"README.md:2: {said}", found[0])

    def test_a_lambda_in_code_is_no_link(self):
        text = "```cpp\nrun([&](int x) {});\n```\n"
        self.assertEqual(check_docs.problems_of(README, text), [])
        self.assertIn("README.md:4: ", check_docs.problems_of(README, text + "[a](docs/nowhere.md)")[0])

    def test_a_table_that_no_document_holds_is_homeless(self):
        self.assertEqual(bench_table.homeless(), [])
        with mock.patch.dict(bench_table.ROWS, {"new_table": lambda _: []}):
            self.assertEqual(bench_table.homeless(), ["new_table"])

    def test_a_figure_that_nobody_drew_is_outdated(self):
        with mock.patch.dict(draw_figures.FIGURES, {"docs/tree.svg": lambda: "another"}):
            self.assertEqual(draw_figures.outdated(), {ROOT / "docs/tree.svg": "another"})

    def test_a_line_between_rooms_that_follows_from_others_is_left_out(self):
        include = '#include "{}/a.h"\n'.format
        files = {"core/a.h": "", "nn/a.h": include("core"), "engine/step/a.h": include("nn") + include("core")}
        uses = draw_rooms.uses_of(files)
        self.assertEqual(uses, {"core": set(), "nn": {"core"}, "engine/step": {"nn", "core"}})
        self.assertEqual(draw_rooms.rooms_figure(files).count('class="link"'), 2)

    def test_the_drawn_tree_is_that_of_the_sums(self):
        self.assertEqual(draw_figures.tree_merges(6), [(0, 1), (2, 3), (4, 5), (0, 2), (0, 4)])


if __name__ == "__main__":
    unittest.main()
