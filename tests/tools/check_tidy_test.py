import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_tidy  # noqa: E402

# Finds fault with a source that says "fault", itself or through a file that it includes.
FAKE = """#!/bin/sh
echo run >> "$LOG"
for word; do case $word in *.cpp) break ;; esac; done
for file in "$word" $(sed -n 's/^#include "\\(.*\\)".*/\\1/p' "$word"); do
  if grep -q '^fault' "$file"; then echo "$file: fault"; exit 1; fi
done
"""


class CheckTidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.clang_tidy = self.root / check_tidy.CLANG_TIDY
        self.clang_tidy.parent.mkdir(parents=True)
        self.clang_tidy.write_text(FAKE)
        self.clang_tidy.chmod(0o755)
        self.log = self.root / "log"
        for patch in (
            mock.patch.object(check_tidy, "ROOT", self.root),
            mock.patch.dict(os.environ, {"LOG": str(self.log)}),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        for name in "abcdef":
            (self.root / f"{name}.cpp").write_text("sound\n")
        self.files = [f"{name}.cpp" for name in "abcdef"]

    def finds(self):
        return check_tidy.Tidy(self.root / "build").finds(self.files, ())

    def runs(self):
        return len(self.log.read_text().splitlines())

    def test_sound_files_take_one_look_and_none_when_nothing_changed(self):
        self.assertEqual(self.finds(), "")
        self.assertEqual(self.finds(), "")
        self.assertEqual(self.runs(), 1)

    def test_names_each_file_at_fault_and_no_other(self):
        for name in "be":
            (self.root / f"{name}.cpp").write_text("fault\n")
        said = self.finds()
        self.assertEqual(said.splitlines(), [f"{self.root / name}.cpp: fault" for name in "be"])

    def test_files_that_only_fail_together_pass(self):
        # As two files with one name in their anonymous namespaces.
        self.clang_tidy.write_text(FAKE + '[ "$(grep -c include "$word")" -lt 4 ]\n')
        self.assertEqual(self.finds(), "")
        self.assertEqual(self.runs(), 3)

    def test_takes_from_a_command_what_decides_on_the_meaning_of_a_source(self):
        (self.root / "compile_commands.json").write_text(json.dumps([{
            "directory": str(self.root / "build"),
            "file": str(self.root / "a.cpp"),
            "command": "c++ -DX=1 -I.. -isystem /usr/include/fmt -O3 -Wall -march=x86-64-v3 -o a.o -c a.cpp",
        }]))  # fmt: skip
        self.assertEqual(
            check_tidy.flags_of(self.root)["a.cpp"],
            ("-std=c++20", "-DX=1", f"-I{self.root.resolve()}", "-isystem", "/usr/include/fmt", "-march=x86-64-v3"),
        )

    def test_knows_the_files_of_a_joined_source(self):
        joined = self.root / "build" / "Unity" / "unity_0_cxx.cxx"
        joined.parent.mkdir(parents=True)
        joined.write_text(f'/* generated */\n#include "{self.root / "a.cpp"}"\n#include "{self.root / "b.cpp"}"\n')
        (self.root / "compile_commands.json").write_text(json.dumps([{
            "directory": str(self.root / "build"),
            "file": str(joined),
            "command": "c++ -DX=1 -include build/cmake_pch.hxx -o a.o -c unity_0_cxx.cxx",
        }]))  # fmt: skip
        flags = ("-std=c++20", "-DX=1")
        self.assertEqual(check_tidy.flags_of(self.root), {"a.cpp": flags, "b.cpp": flags})

    def test_a_change_touches_what_includes_it_over_headers_too(self):
        (self.root / "near.h").write_text('#include "far.h"\n')
        (self.root / "far.h").write_text("int far;\n")
        (self.root / "a.cpp").write_text('#include "near.h"\n')
        subprocess.run(["git", "add", "."], cwd=self.root, check=True)
        self.assertEqual(check_tidy.touched_by({"far.h", "b.cpp", "README.md"}, self.files), ["a.cpp", "b.cpp"])

    def commit(self):
        subprocess.run(["git", "add", "."], cwd=self.root, check=True)
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, "commit", "-qm", "all"], cwd=self.root, check=True)
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.root, check=True, capture_output=True, text=True)
        return head.stdout.strip()

    def test_everything_is_looked_at_where_settings_or_history_differ(self):
        for name in (".clang-tidy", "tools/check_tidy.py", "scripts/setup.sh"):
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text("wheels=(clang-tidy==22.1.8)\n")
        checked = self.root / "checked.txt"
        with mock.patch.object(check_tidy, "CHECKED", checked):
            self.assertIsNone(check_tidy.changed_since_checked())
            checked.write_text(f"{self.commit()} {check_tidy.settings_digest()}\n")
            (self.root / "c.cpp").write_text("changed\n")
            self.assertEqual(check_tidy.changed_since_checked(), {"c.cpp"})
            (self.root / ".clang-tidy").write_text("Checks: more\n")
            self.assertIsNone(check_tidy.changed_since_checked())
            checked.write_text(f"{'0' * 40} {check_tidy.settings_digest()}\n")
            self.assertIsNone(check_tidy.changed_since_checked())


if __name__ == "__main__":
    unittest.main()
