"""tools/count_tests.py: what a run of the tests closes with."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import count_tests  # noqa: E402

CTEST = """<testsuite>
<testcase name="lint.size"/><testcase name="e2e.Mnist"><skipped/></testcase><testcase name="Relu"><failure/></testcase>
<testcase name="test_core.0">{}</testcase>
</testsuite>"""
GTEST = """<testsuites><testsuite name="Tree">
<testcase classname="Tree" name="A"/><testcase classname="Tree" name="B"/>
<testcase classname="Tree" name="C">{}</testcase>
</testsuite></testsuites>"""


class CountTests(unittest.TestCase):
    def count(self, whole="", last_case="", report=True):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(count_tests, "ROOT", Path(folder)):
            results, reports = Path(folder) / "tsan.xml", Path(folder) / "build" / "tsan" / "gtest"
            reports.mkdir(parents=True)
            results.write_text(CTEST.format(whole))
            if report:
                (reports / "test_core.0.xml").write_text(GTEST.format(last_case))
            return {how: len(names) for how, names in count_tests.counts_of([results]).items()}

    def test_a_program_with_a_report_counts_as_its_cases(self):
        self.assertEqual(self.count(), {"passed": 4, "failed": 1, "skipped": 1})
        self.assertEqual(self.count(last_case="<skipped/>"), {"passed": 3, "failed": 1, "skipped": 2})

    def test_a_failed_case_counts_once(self):
        self.assertEqual(self.count("<failure/>", "<failure/>"), {"passed": 3, "failed": 2, "skipped": 1})

    def test_a_program_that_fails_without_a_failed_case_or_a_report_counts(self):
        self.assertEqual(self.count("<failure/>"), {"passed": 4, "failed": 2, "skipped": 1})
        self.assertEqual(self.count("<failure/>", report=False), {"passed": 1, "failed": 2, "skipped": 1})

    def test_a_test_that_could_not_start_has_failed(self):
        for message in ("Unable to find executable", "Fixture dependency failed"):
            counts = self.count(f'<skipped message="{message}"/>', report=False)
            self.assertEqual(counts, {"passed": 1, "failed": 2, "skipped": 1})
        self.assertEqual(
            self.count('<skipped message="SKIP_RETURN_CODE=77"/>', report=False),
            {"passed": 1, "failed": 1, "skipped": 2},
        )

    def test_a_disabled_test_is_skipped(self):
        case = count_tests.ElementTree.fromstring('<testcase name="a" status="disabled"/>')
        self.assertEqual(count_tests.outcome(case), "skipped")


if __name__ == "__main__":
    unittest.main()
