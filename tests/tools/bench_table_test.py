"""tools/bench_table.py and the scripts of bench/: from what programs print to a table."""

import contextlib
import io
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "tools"), str(ROOT / "bench")]
import allreduce_speed  # noqa: E402
import bench_table  # noqa: E402
import side_by_side  # noqa: E402

PEER_OUTPUT = """mpi np=2 bytes=4096 median_us=3.0 min_us=2.0
mpi np=2 bytes=1048576 median_us=500.5 min_us=300.0
mpi(inplace) np=2 bytes=4096 median_us=2.5 min_us=2.0
"""


class AllreduceSpeed(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual([allreduce_speed.parse_size(text) for text in ("96", "4K", "25M")], [96, 4096, 25 << 20])

    def test_the_later_line_of_a_size_is_the_one_in_place(self):
        self.assertEqual(allreduce_speed.times_printed(PEER_OUTPUT), {4096: 2.5, 1048576: 500.5})

    def test_ratios_are_taken_round_by_round(self):
        rounds = [{"lockstep": {4096: a}, "gloo": {4096: b}} for a, b in ((1, 10), (2, 40), (4, 44))]
        row = allreduce_speed.summary(rounds, 2, 4096)
        self.assertEqual((row["lockstep_us"], row["gloo_us"]), (2, 40))
        self.assertEqual(row["gloo_ratio"], {"median": 11, "min": 10, "max": 20})


class SideBySide(unittest.TestCase):
    def test_a_noisy_round_is_repeated_but_not_for_ever(self):
        for noise, calls in (([50, 5, 5], 3), ([50, 50, 50, 50], 4)):
            shares = iter(noise)
            side_by_side.Neighbours = lambda: type("Fake", (), {"percent": lambda self: next(shares)})()
            ran = []
            with contextlib.redirect_stdout(io.StringIO()):
                kept, _ = side_by_side.run_rounds({"lockstep": lambda: ran.append(1)}, 2, 15, "test")
            self.assertEqual((len(kept), len(ran)), (2, calls))


class BenchTable(unittest.TestCase):
    RESULT = {
        "script": "s.py", "date": "2026-01-01", "commit": "abc", "cpu": "CPU", "cores": 2, "rounds": 5,
        "peers": {"open_mpi": "Open MPI 4", "gloo": "PyTorch 2"},
        "results": [{
            "ranks": 2, "bytes": 25 << 20, "lockstep_us": 1048.576,
            "open_mpi_us": 5200.0, "open_mpi_ratio": {"median": 5.0, "min": 4.5, "max": 5.5},
            "gloo_us": 20000.0, "gloo_ratio": {"median": 19.0, "min": 18.0, "max": 20.0},
        }],
    }  # fmt: skip

    def test_a_row_holds_times_bandwidth_and_ratios(self):
        head, _, row, *_ = bench_table.allreduce_rows(self.RESULT)
        self.assertEqual(head, "| all-reduce in place, f32 | ranks | Lockstep | Open MPI | gloo |")
        self.assertEqual(
            row, "| 25 MiB | 2 | 1.05 ms, 25.0 GB/s | 5.2 ms: 5.0x (4.5-5.5) | 20 ms: 19.0x (18.0-20.0) |"
        )

    def test_without_peers_there_are_no_columns_of_theirs(self):
        rows = bench_table.allreduce_rows(self.RESULT | {"peers": {}})
        self.assertEqual(rows[0].count("|"), 4)

    def test_only_the_text_between_markers_changes(self):
        text = "a\n<!-- measured: convnet_cpu -->\nold\n<!-- /measured -->\nb\n"
        updated = bench_table.with_tables(text)
        self.assertTrue(updated.startswith("a\n<!-- measured: convnet_cpu -->\n| ConvNet"))
        self.assertTrue(updated.endswith("\n<!-- /measured -->\nb\n"))
        self.assertEqual(bench_table.with_tables(updated), updated)


if __name__ == "__main__":
    unittest.main()
