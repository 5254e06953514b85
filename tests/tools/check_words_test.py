"""tools/check_words.py: what it finds in a text."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from check_words import spelling_problems, wording_problems  # noqa: E402

CLEAN = """\
// Sums of a shard. The color of a neighbor is optimistic; analysis is realistic. RandomIsEnough.
#pragma once

// Gives what the caller wants.
// What follows is not the first line.
int who(int speaks);
"""


class CheckWords(unittest.TestCase):
    def test_a_clean_text_has_no_problem(self):
        self.assertEqual(spelling_problems("a.h", CLEAN) + wording_problems("a.h", CLEAN), [])

    def test_british_spelling_is_found_with_file_and_line(self):
        for word in (
            "colour", "Neighbours", "optimiser", "OPTIMISATION", "normalised", "analysing", "centre", "cancelled",
            "grey_image", "spoilt", "towards", "realise", "flavours",
        ):  # fmt: skip
            found = spelling_problems("core/a.h", CLEAN.replace("Gives", word))
            self.assertEqual(len(found), 1, word)
            self.assertIn("core/a.h:4: ", found[0])

    def test_unclear_phrases_are_found(self):
        for word in ("whoever", "it hangs on the number", "one a rank", "two values an image", "images_a_step"):
            found = wording_problems("a.cpp", CLEAN.replace("Gives", word))
            self.assertEqual(len(found), 1, word)
            self.assertIn("a.cpp:4: ", found[0])

    def test_a_header_comment_that_begins_as_a_fragment_is_found(self):
        for begin in ("Of one rank.", "What a rank does.", "The same, but later."):
            text = CLEAN.replace("Gives what the caller wants.", begin)
            self.assertEqual(wording_problems("a.h", text), [f"a.h:4: a comment begins as a fragment: // {begin}"])
            self.assertEqual(wording_problems("a.cpp", text), [])


if __name__ == "__main__":
    unittest.main()
