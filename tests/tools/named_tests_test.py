"""tools/named_tests.py: which names of tests exist."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import named_tests  # noqa: E402


class NamedTests(unittest.TestCase):
    def test_entries_are_named_as_cmakes_loops_name_them(self):
        cmake = """
foreach(scenario same-bits cut-off)
  add_test(NAME e2e.two_hosts.${scenario}
foreach(transport shm tcp)
  foreach(ranks 1 2)
    lockstep_mpi_test(${transport}.sums_np${ranks} ${ranks} 0)
foreach(script launching.sh tutorial_commands.py)
  add_test(NAME e2e.${name} COMMAND
"""
        loops = {f"ranks.{transport}.sums_np{ranks}" for transport in ("shm", "tcp") for ranks in (1, 2)}
        scripts = {"e2e.launching", "e2e.tutorial_commands", "e2e.two_hosts.same-bits", "e2e.two_hosts.cut-off"}
        self.assertEqual(named_tests.entries_of(cmake), loops | scripts)

    def test_a_suites_test_an_entry_and_a_path_exist_and_others_do_not(self):
        for name in ("Models.NamesAndShapesArePyTorchs", "ranks.tcp.collectives_np7", "tests/long/README.md"):
            self.assertTrue(named_tests.exists(name), name)
        for name in ("Models.Absent", "ranks.tcp.collectives_np9", "e2e.two_hosts.same-bits.mpi", "tests/long/absent"):
            self.assertFalse(named_tests.exists(name), name)


if __name__ == "__main__":
    unittest.main()
