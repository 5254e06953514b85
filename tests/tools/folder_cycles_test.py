import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tools"))
from check_layers import cycles  # noqa: E402


def files(**includes: str) -> dict[str, str]:
    """Files by their paths, "__" for a slash, each with one include."""
    return {f"{name.replace('__', '/')}.h": f'#pragma once\n#include "{target}"\n' for name, target in includes.items()}


class FolderCycles(unittest.TestCase):
    def test_one_way_is_sound(self):
        self.assertEqual(cycles(files(t__loop__a="t/config/b.h", t__config__b="core/c.h", t__main="t/loop/a.h")), [])

    def test_two_folders_name_both_includes(self):
        planted = files(t__loop__a="t/config/b.h", t__config__c="t/loop/d.h")
        self.assertEqual(
            cycles(planted),
            [
                't: its folders include each other: t/config/c.h includes "t/loop/d.h"; '
                't/loop/a.h includes "t/config/b.h"'
            ],
        )

    def test_three_folders_at_a_depth(self):
        inner = {"core/x/a/1": "core/x/b/2.h", "core/x/b/2": "core/x/c/3.h", "core/x/c/3": "core/x/a/1.h"}
        self.assertEqual(len(cycles(files(**inner))), 1)
        del inner["core/x/b/2"]
        self.assertEqual(cycles(files(**inner)), [])

    def test_a_folders_own_files_are_a_folder(self):
        both_ways = {"t/main": "t/loop/a.h", "t/loop/a": "t/program.h"}
        self.assertEqual(len(cycles(files(**both_ways))), 1)
        in_core = {f"core{name[1:]}": f"core{target[1:]}" for name, target in both_ways.items()}
        self.assertEqual(cycles(files(**in_core)), [])

    def test_top_folders_are_not_its_affair(self):
        self.assertEqual(cycles(files(a__b="c/d.h", c__e="a/f.h")), [])

    def test_a_comment_includes_nothing(self):
        back = {"t/loop/a.h": '// #include "t/config/b.h"\n', "t/config/b.h": '#include "t/loop/a.h"\n'}
        self.assertEqual(cycles(back), [])


if __name__ == "__main__":
    unittest.main()
