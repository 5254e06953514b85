"""The tests of gpu_suite_test.py that run all parts, or ranks in six ways. scripts/test.sh --all runs them."""

import unittest

from gpu_suite_test import SuiteCase


class WholeGpuSuite(SuiteCase):
    def test_all_parts_then_none(self):
        sanitized = dict.fromkeys(("memcheck", "racecheck", "initcheck", "synccheck"), "passed")
        others = "plan tests step memory nccl-1 ranks norms train input trace jpeg bench peers".split()
        others += [f"speed-{name}" for name in "amp rule compile max-autotune f32 tf32 convnet small".split()]
        expected = dict.fromkeys(others, "passed") | sanitized | dict.fromkeys(("nccl-2", "nccl-4", "nccl-8"), "absent")
        self.assertEqual(self.run_parts(), (0, expected))
        self.assertEqual(self.runs(), 5)
        self.assertEqual(self.run_parts(), (0, expected))
        self.assertEqual(self.runs(), 5)
        self.run_parts("--only", "tests")
        self.assertEqual(self.runs(), 6)
        (self.work / "programs" / "commit").touch()
        with (self.work / "programs" / "test_cuda").open("a") as program:
            program.write("# another version\n")
        self.run_parts()
        self.assertEqual(self.runs(), 11)

    def test_a_part_that_fails_is_repeated(self):
        code, parts = self.run_parts(BROKEN_TOOL="racecheck")
        self.assertEqual((code, parts["racecheck"], parts["bench"]), (1, "failed", "passed"))
        self.assertEqual(self.run_parts()[1]["racecheck"], "passed")
        self.assertEqual(self.runs(), 5)

    def test_ranks_over_nccl(self):
        states = {"nccl-2": "passed", "nccl-4": "absent"}
        self.assertEqual(self.run_parts("--only", "nccl-2,nccl-4", GPUS="2"), (0, states))
        pairs = [("shards", "2"), ("shards", "2-eager"), ("sync", "2-sync")]
        self.assertEqual(self.compared(), pairs)
        self.assertEqual(self.result("gpu_figures.json")["figures"]["nccl_2_efficiency"], 0.99)
        self.assertLess(self.result("gpu_figures.json")["figures"]["nccl_2_killed_s"], 60)
        broken = [{"BROKEN_RUN": f"2-{name}"} for name in ("eager", "own", "sync")]
        for trouble in ({"DIFFERENT": "1"}, *broken):
            code, parts = self.run_parts("--only", "nccl-2", GPUS="2", **trouble)
            self.assertEqual((code, parts["nccl-2"]), (1, "failed"), trouble)


if __name__ == "__main__":
    unittest.main()
