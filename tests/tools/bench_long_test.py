"""tools/bench_long.py: from the long tests' tables to counts."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
import bench_long  # noqa: E402

FAULTS = """# Faults
| phase | call | error | kill | short | late | broke a promise |
|---|---|---|---|---|---|---|
| save | fsync | 11 | 10 | 0 | 0 | 0 |

| phase | call | error | kill | short | late | broke a promise |
|---|---|---|---|---|---|---|
| start | read | 4 | 3 | 2 | 1 | 1 |
"""
SCHEDULES = """
| date, commit | seed | schedules | restarts | failed | what |
|---|---|---|---|---|---|
| first | 7 | 8 | 12 | 1 | a find |
| second | 8 | 1,200 of 1,200, 6 minutes | 164 | 0 | none |
"""
FUZZ = """
| target | CPU minutes | inputs tried | edges reached | corpus | found | when, commit |
|---|---|---|---|---|---|---|
| idx | 10.0 | 2,945,011 | 353 | 24 | a crash | today |
| safetensors | 10.0 | 5,998 | 3,611 | 2,331 | none | today |

| target | planted | inputs tried | CPU seconds | found as | when, commit |
|---|---|---|---|---|---|
| idx | a bug | 5 | 0 | a crash | today |
"""


class CountedPromises(unittest.TestCase):
    def test_counts_of_all_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("faults.md", FAULTS), ("restart_schedules.md", SCHEDULES), ("fuzz.md", FUZZ)):
                Path(folder, name).write_text(text, encoding="utf-8")
            rows = bench_long.counted_promises(Path(folder))
        counts = [(row[0], row[2], row[4]) for row in rows]
        self.assertEqual(counts, [
            ("P4", "13", "1 broke it"),
            ("P5", "1,200", "0 broke it"),
            ("P6", "5,998", "0 broke it"),
            ("P8", "2,951,009", "1 broke it"),
            ("P9", "31", "1 broke it"),
        ])
        self.assertIn("2 readers", rows[3][1])

    def test_a_row_of_another_width_is_an_error(self):
        with self.assertRaises(ValueError):
            bench_long.table_rows("| a | b |\n|---|---|\n| 1 |\n")


if __name__ == "__main__":
    unittest.main()
