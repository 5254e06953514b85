"""What the library's listed surface holds, and how Doxygen is shown our comments."""
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_abi  # noqa: E402


class CheckAbiTest(unittest.TestCase):
    def test_inline_code_and_type_names_are_no_promise(self):
        names = """0000000000000000 A LOCKSTEP
0000000000001000 T lockstep::f(int)@@LOCKSTEP
0000000000001000 T lockstep::f(int)@@LOCKSTEP
0000000000001010 B lockstep::b@@LOCKSTEP
0000000000001020 W lockstep::g()@@LOCKSTEP
0000000000001030 V typeinfo for lockstep::C@@LOCKSTEP
0000000000001040 V vtable for lockstep::C@@LOCKSTEP
0000000000001050 u lockstep::h()::seconds@@LOCKSTEP
"""
        self.assertEqual(check_abi.exported(names), ["lockstep::b", "lockstep::f(int)", "vtable for lockstep::C"])

    def test_doxygen_is_shown_comments_before_and_behind_declarations(self):
        source = "// A file.\n#pragma once\n\n// `n` < 2 @ #1.\nint f();\nint a = 1;  // of it\nint g() {  // not\n"
        shown = subprocess.run(["awk", "-f", ROOT / "packaging/doxygen.awk"], input=source, capture_output=True,
                               text=True, check=True).stdout
        self.assertEqual(shown, "/// @file\n/// A file.\n#pragma once\n\n/// <tt>n</tt> \\< 2 \\@ \\#1.\nint f();\n"
                                "int a = 1; ///< of it\nint g() {  // not\n")


if __name__ == "__main__":
    unittest.main()
