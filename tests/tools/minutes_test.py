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
        text = minutes.table({"packages": 2, "build": 1, "all": 3}, {"packages": 1.5, "all": 9}, 1.0)
        self.assertEqual(text.splitlines()[-1], "over budget: packages")
        self.assertIn("all                              3.0         3.0     9.0", text)

    def test_budgets_are_minutes_at_speed_1_and_fail_above_one_and_a_half(self):
        taken, budgets = {"a": 3.0, "b": 3.1, "c": 9.0}, {"a": 2.0, "b": 2.0}
        self.assertEqual(minutes.over_budget(taken, budgets, 1.0, minutes.FAILS_ABOVE), ["b"])
        self.assertEqual(minutes.over_budget(taken, budgets, 0.5, minutes.FAILS_ABOVE), [])
        self.assertIn("failed: over 1.5 times the budget: b", minutes.table(taken, budgets, 1.0))

    def test_the_slowest_speed_counts_and_is_no_part(self):
        text = "speed\t1.2\nbuild\t60\nspeed\t0.8\n"
        self.assertEqual(minutes.speed_of(text), 0.8)
        self.assertEqual(minutes.speed_of("build\t60\n"), 1.0)
        self.assertEqual(minutes.minutes_of_parts(text), {"build": 1})

    def test_the_last_ten_runs_are_kept(self):
        kept = ""
        for number in range(12):
            kept = minutes.with_run(kept, f"run {number}")
        self.assertEqual(kept.splitlines()[1:], [f"run {number}" for number in range(2, 12)])
        self.assertEqual(minutes.with_run(kept, "run 11"), kept)

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
