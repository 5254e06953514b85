"""tools/minutes.py: where the minutes of a build and its tests went."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import minutes  # noqa: E402


class Minutes(unittest.TestCase):
    def test_a_part_that_ran_twice_counts_twice(self):
        text = "packages\t30\nbuild\t60\npackages\t90\n"
        self.assertEqual(minutes.minutes_of_parts(text), {"packages": 2, "build": 1})

    def test_labels_are_those_of_ctests_summary(self):
        said = "Label Time Summary:\ncuda-compile    = 120.00 sec*proc (2 tests)\nunit    =  60.00 sec*proc (9 tests)\n"
        self.assertEqual(minutes.minutes_of_labels(said), {"label cuda-compile": 1, "label unit": 0.5})

    def test_budgets_are_those_of_the_table_in_contributing(self):
        self.assertEqual(minutes.budgets_of("| `packages` | 1.5 | apt |\n| other | 2 |\n"), {"packages": 1.5})

    def test_what_exceeds_its_budget_is_named(self):
        text = minutes.table({"packages": 2, "build": 1}, {"label unit": 3}, {"packages": 1.5, "all": 9})
        self.assertEqual(text.splitlines()[-1], "over budget: packages")
        self.assertIn("all                              3.0     9.0", text)

    def test_every_label_and_preset_of_ci_has_a_budget(self):
        root = Path(minutes.ROOT)
        budgets = minutes.budgets_of((root / "CONTRIBUTING.md").read_text(encoding="utf-8"))
        labels = ("unit", "mpi", "e2e", "emulated", "emulated-train", "mutants", "cuda-compile", "cudnn-plan", "lint")
        for part in ("packages", "train.sh: build", "train.sh: training", "all", *(f"label {name}" for name in labels)):
            self.assertIn(part, budgets)
        for preset in ("release", "asan-ubsan", "tsan"):
            self.assertIn(f"{preset}: build", budgets)
            self.assertIn(f"{preset}: tests", budgets)


if __name__ == "__main__":
    unittest.main()
