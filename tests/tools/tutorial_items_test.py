"""tools/tutorial_items.py: the tables that it writes, and the rows that it refuses."""

import sys
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import tutorial_items  # noqa: E402


def with_row(changed: str, **columns: str) -> list[list[str]]:
    """The rows as they are, one of them changed."""
    names = ("number", "item", "state", "tests", "note")
    return [
        [columns.get(name, old) for name, old in zip(names, row)] if row[0] == changed else row
        for row in tutorial_items.rows()
    ]


class TutorialItems(unittest.TestCase):
    def test_all_80_items_are_there_and_their_tests_exist(self):
        self.assertEqual(tutorial_items.problems(), [])
        self.assertEqual(len(tutorial_items.rows()), 80)

    def test_a_row_that_promises_too_much_is_named(self):
        for number, columns, said in (
            ("0.4", {"tests": "Models.Absent"}, "item 0.4: no test is called Models.Absent"),
            ("0.4", {"tests": "e2e.absent"}, "item 0.4: no test is called e2e.absent"),
            ("0.4", {"tests": "ranks.shm.absent_np7"}, "item 0.4: no test is called ranks.shm.absent_np7"),
            ("0.4", {"tests": "tests/long/absent.sh"}, "item 0.4: no test is called tests/long/absent.sh"),
            ("0.4", {"tests": ""}, "item 0.4: one that works has tests"),
            ("0.4", {"state": "", "note": "soon"}, "item 0.4: its state is ''"),
            ("2.13", {"note": ""}, "item 2.13: one that works has tests, another says why"),
            ("0.4", {"number": "0.44"}, "items: {'0.4"),
        ):
            changed = with_row(number, **columns)
            with mock.patch.object(tutorial_items, "rows", return_value=changed):
                found = tutorial_items.problems()
            self.assertTrue(any(said in problem for problem in found), f"{said}: {found}")

    def test_the_document_is_written_between_its_marks(self):
        text = "a\n<!-- states -->\n-\n<!-- /states -->\nb\n<!-- items: 4 -->\n<!-- /items -->\nc\n"
        with mock.patch.object(tutorial_items, "rows", return_value=[["4.12", "the GIL", "works", "A.B C.D", "none"]]):
            written = tutorial_items.with_tables(text)
        self.assertIn("-->\nStates of the 1 items: works: 1, needs a GPU: 0, declined: 0, open: 0.\n<!--", written)
        self.assertIn("| 4.12 | the GIL | works | `A.B`<br>`C.D` | none |\n<!-- /items -->\nc\n", written)


if __name__ == "__main__":
    unittest.main()
