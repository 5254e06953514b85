"""tests/tutorials/items.tsv: all 80 items, and that the tests it names exist."""

import re
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ITEMS_OF_TUTORIAL = (25, 17, 13, 13, 12)
DEFINED = re.compile(r"^(?:TEST|TEST_F|TEST_P)\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)


def rows() -> list[list[str]]:
    lines = (TESTS / "tutorials/items.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


class TutorialItems(unittest.TestCase):
    def test_each_item_has_a_row_in_order(self):
        wanted = [f"{t}.{i}" for t, count in enumerate(ITEMS_OF_TUTORIAL) for i in range(1, count + 1)]
        numbered = sorted(rows(), key=lambda row: [int(part) for part in row[0].split(".")])
        self.assertEqual([row[0] for row in numbered], wanted)
        self.assertTrue(all(len(row) == 4 for row in numbered))

    def test_a_state_has_what_it_needs(self):
        for item, state, tests, note in rows():
            self.assertIn(state, ("works", "needs a GPU", "declined", ""), item)
            self.assertEqual(state == "works", bool(tests) and state != "declined", item)
            self.assertTrue(state != "declined" or note, f"{item} is declined without a reason")

    def test_the_tests_exist(self):
        texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("*_test.cpp")]
        defined = {f"{suite}.{name}" for text in texts for suite, name in DEFINED.findall(text)}
        cmake = (TESTS / "CMakeLists.txt").read_text(encoding="utf-8")
        for item, _, tests, _ in rows():
            for test in tests.split():
                script = re.fullmatch(r"(?:e2e|ranks\.\w+)\.([a-z_]+?)(?:_np\d+|\.[\w-]+)?", test)
                found = script and script[1] in cmake or test in defined
                self.assertTrue(found, f"{item}: no test is called {test}")


if __name__ == "__main__":
    unittest.main()
