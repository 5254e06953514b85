"""Fails when a document's tables or figures are outdated, it names a missing test or file, or a line is too long.

usage: python3 tools/check_docs.py
"""

import re
import subprocess
import sys
from pathlib import Path

import bench_table
import draw_figures
import tutorial_items

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 120  # of a line that is not a table's
CODE = re.compile(r"^```cpp\n.*?^```$", re.MULTILINE | re.DOTALL)  # where [&](x) is no link
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)|<img[^>]* src=\"([^\":]+)\"")
FOLDERS = "bench|cmake|comm|core|data|docs|engine|inspect|kernels|nn|scripts|tests|tools|trainers"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./*{{}},-]+)(?: [^`]*)?`")
BRACES = re.compile(r"(.*)\{([^}]*)\}(.*)")


def expanded(name: str) -> list[str]:
    """Expands {a,b} as a shell does."""
    match = BRACES.fullmatch(name)
    if match is None:
        return [name]
    return [one for middle in match[2].split(",") for one in expanded(match[1] + middle + match[3])]


def exists(name: str) -> bool:
    """Patterns may stand for several files, and a suffix may be left out."""
    return any(ROOT.glob(name.rstrip("/"))) or any(ROOT.glob(f"{name}.*"))


def problems_of(path: Path, text: str) -> list[str]:
    found, name_of_path = [], path.relative_to(ROOT)
    text = CODE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS and not line.startswith("|"):
            found.append(f"{name_of_path}:{number}: {len(line)} columns, {COLUMNS} allowed")
        for target in (match[1] or match[2] for match in LINK.finditer(line)):
            if not (path.parent / target).exists():
                found.append(f"{name_of_path}:{number}: links to {target}, which is not there")
        for name in (one for match in NAMED.finditer(line) for one in expanded(match[1])):
            if not exists(name):
                found.append(f"{name_of_path}:{number}: names {name}, which is not there")
    return found


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    documents = [ROOT / name for name in listed.stdout.split()]
    problems = [problem for path in documents for problem in problems_of(path, path.read_text(encoding="utf-8"))]
    for tool in (bench_table, draw_figures, tutorial_items):
        problems += [f"{path.name} differs: run python3 tools/{tool.__name__}.py" for path in tool.outdated()]
    problems += tutorial_items.problems()
    problems += [f"{name}: a table without a place in a document" for name in bench_table.homeless()]
    print("\n".join(problems) or f"{len(documents)} documents are up to date")
    return 1 if problems or not documents else 0


if __name__ == "__main__":
    sys.exit(main())
