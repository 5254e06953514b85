"""tools/cuda_issue.py on listings as cuobjdump prints them."""

import json
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tools"))
from cuda_issue import BUDGET, MainLoop, bytes_of, issue_use, main_loop, parsed, problems_of  # noqa: E402


def code(*lines: str):
    """Instructions 16 bytes apart from address 0."""
    listing = [f"        /*{16 * at:04x}*/    {line} ;    /* 0x0123 */" for at, line in enumerate(lines)]
    return [instruction for line in listing if (instruction := parsed(line)) is not None]


class CudaIssue(unittest.TestCase):
    def test_bytes_of_an_access(self):
        expected = {"LDG.E.128.CONSTANT": 16, "STG.E.U16": 2, "LDG.E": 4, "LDG.E.U8": 1, "LDG.E.64": 8}
        expected |= {"LD.E.ENL2.256": 32, "LDS.128": 0, "LDC.64": 0, "LDGSTS.E.BYPASS.128": 16, "STL": 0, "FADD": 0}
        self.assertEqual({name: bytes_of(name) for name in expected}, expected)

    def test_the_innermost_loop_that_moves_most_is_the_main_one(self):
        scalar = ["LDG.E.U16 R1, [R2]", "@P0 BRA 0x0"]
        main = ["LDG.E.128 R4, [R2]", "FADD R4, R4, R5", "STG.E.128 [R2], R4", "@P1 BRA 0x20"]
        outer = ["@P2 BRA 0x0", "EXIT", "NOP"]
        self.assertEqual(main_loop(code(*scalar, *main, *outer)), MainLoop(4, 32))

    def test_of_several_paths_the_one_with_most_instructions_counts(self):
        lines = [
            "LDG.E.128 R4, [R2]",  # 0x00
            "@!P1 BRA 0x50",
            "FADD R4, R4, R5",
            "FADD R4, R4, R5",
            "BRA 0x60",
            "FMUL R4, R4, R5",  # 0x50: the short way
            "STG.E.128 [R2], R4",
            "@P0 BRA 0x0",
            "EXIT",
        ]
        self.assertEqual(main_loop(code(*lines)), MainLoop(7, 32))
        lines[4] = "BRA P3, 0x60"  # may go on
        self.assertEqual(main_loop(code(*lines)), MainLoop(8, 32))

    def test_a_way_out_of_the_loop_is_no_iteration(self):
        lines = ["LDG.E R4, [R2]", "@P1 BRA 0x50", "STG.E [R2], R4", "@P0 BRA 0x0", "EXIT"]
        self.assertEqual(main_loop(code(*lines, *["FADD R1, R1, R1"] * 9, "EXIT")), MainLoop(4, 8))

    def test_a_kernel_without_a_loop_counts_as_a_whole(self):
        lines = ["@P0 EXIT", "LDG.E.128 R4, [R2]", "CALL.REL.NOINC 0x60", "STG.E.128 [R2], R4", "EXIT"]
        self.assertEqual(main_loop(code(*lines, "BRA 0x50", *["FADD R1, R1, R1"] * 9, "RET R1")), MainLoop(5, 32))

    def test_issue_use_at_the_bandwidth_of_a_card(self):
        card = {"sms": 100, "clock_hz": 1e9, "bytes_per_s": 12.8e12}  # a byte for each thread's slot
        self.assertEqual(issue_use(MainLoop(32, 64), card), 0.5)
        self.assertEqual(issue_use(MainLoop(32, 0), card), 0.0)

    def test_new_gone_worse_and_unreasoned_kernels_are_named(self):
        entry = {"instructions": 1, "bytes": 4, "issue": 0.4}
        budget = {"limit": 0.5, "reasons": {}, "kernels": {"a: k sm_90": entry}}
        found = {"a: k sm_90": entry}
        self.assertEqual(problems_of(found, budget, {}, True), [])
        self.assertIn("new", problems_of(found | {"a: l sm_90": entry}, budget, {}, True)[0])
        self.assertIn("gone", problems_of({}, budget, {}, True)[0])
        worse = {"a: k sm_90": entry | {"issue": 0.45}}
        self.assertEqual(problems_of(worse, budget, {}, True), ["a: k sm_90: issue use 0.4 -> 0.45"])
        self.assertEqual(problems_of(worse, budget, {}, False), [])
        high = entry | {"issue": 0.6}
        budget["kernels"] = found = {"a: k sm_90": high}
        self.assertIn("without a reason", problems_of(found, budget, {}, False)[0])
        self.assertEqual(problems_of(found, budget, {"a: *": "slow path"}, True), [])
        budget["reasons"] = {"a: k": "it computes"}
        self.assertEqual(problems_of(found, budget, {}, True), [])
        found["a: k sm_90"] = entry
        self.assertIn("name no kernel above", problems_of(found, budget, {}, True)[0])

    def test_every_kernel_with_a_resource_budget_has_one_here(self):
        resources = json.loads((BUDGET.parent / "resources.json").read_text())["kernels"]
        both = {key for key in resources if not key.endswith("sm_80")}
        self.assertEqual(set(json.loads(BUDGET.read_text())["kernels"]), both)


if __name__ == "__main__":
    unittest.main()
