"""Adds up ctest's JUnit files and prints 'N passed, N failed, N skipped' as the last line.

usage: python3 tools/count_tests.py FILE.xml...      exit status 1 when a test failed or none ran
"""

import sys
import xml.etree.ElementTree as ElementTree


def main() -> int:
    total = failed = skipped = 0
    for path in sys.argv[1:]:
        suite = ElementTree.parse(path).getroot()
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0))
        skipped += int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
        for case in suite.iter("testcase"):
            if case.find("failure") is not None:
                print(f"failed: {case.get('name')} ({path})")
            elif case.find("skipped") is not None:
                print(f"skipped: {case.get('name')} ({path})")
    passed = total - failed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
