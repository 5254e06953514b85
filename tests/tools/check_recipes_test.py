"""tools/check_recipes.py: what a recipe lists, and that a wrong list or a broken patch is found."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import check_recipes  # noqa: E402

RECIPES = """# Tasks

## One

[one.patch](one.patch)

```
a.h    why
b/c.cpp
```

```
another block
```

## Two

No patch.
"""
PATCH = """diff --git a/a.h b/a.h
new file mode 100644
--- /dev/null
+++ b/a.h
@@ -0,0 +1 @@
+int f(int i);
diff --git a/c.cpp b/c.cpp
--- a/c.cpp
+++ b/c.cpp
@@ -1 +1 @@
-int g();
+int g(int i);
"""


class Lists(unittest.TestCase):
    def test_the_first_block_of_a_section_with_a_patch_counts(self):
        self.assertEqual(check_recipes.recipes_of(RECIPES), {"one.patch": ["a.h", "b/c.cpp"]})

    def test_a_recipe_without_a_list_lists_nothing(self):
        self.assertEqual(check_recipes.recipes_of("## One\n[one.patch](one.patch)\n"), {"one.patch": []})


class Patches(unittest.TestCase):
    def problems(self, listed: list[str], patch: str = PATCH, source: str = "int g();\n") -> list[str]:
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(check_recipes, "LINTS", ()):
            copy = Path(folder)
            (copy / "c.cpp").write_text(source)
            (copy / "one.patch").write_text(patch)
            subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
            subprocess.run(["git", "add", "c.cpp"], cwd=copy, check=True)
            compiler = check_recipes.Compiler.__new__(check_recipes.Compiler)
            compiler.known, compiler.kernels = {"c.cpp": ("-std=c++20",)}, None
            compiler.build, compiler.copy = copy / "build", copy
            found, left_out = check_recipes.problems_of(copy / "one.patch", listed, compiler)
            self.assertEqual(left_out, [])
            self.assertEqual((copy / "c.cpp").read_text(), source, "not taken back")
            return found

    def test_a_true_recipe_has_no_problem(self):
        self.assertEqual(self.problems(["a.h", "c.cpp"]), [])

    def test_lists_that_differ_are_named(self):
        found = self.problems(["c.cpp", "d.cpp"])
        self.assertEqual(
            found,
            ["touches a.h, which the recipe does not list", "does not touch d.cpp, which the recipe lists"],
        )

    def test_a_patch_that_does_not_apply_is_named(self):
        found = self.problems(["a.h", "c.cpp"], source="int h();\n")
        self.assertIn("patch does not apply", found[0])

    def test_a_source_that_does_not_compile_is_named(self):
        found = self.problems(["a.h", "c.cpp"], PATCH.replace("+int g(int i);", "+int g(int i;"))
        self.assertIn("c.cpp:1", found[-1])


if __name__ == "__main__":
    unittest.main()
