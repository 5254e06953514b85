"""Draws which folder includes which, as docs/rooms.svg; lines that follow from others are left out.

usage: python3 tools/draw_rooms.py [COMMIT > FILE]   (without a commit, tools/draw_figures.py draws the working tree)
"""

import re
import subprocess
import sys
from pathlib import Path

from draw_figures import Drawing

ROOT = Path(__file__).resolve().parent.parent
WHOLE = ("core", "kernels", "nn", "comm", "data")  # one box each
SPLIT = ("engine", "trainers", "inspect")  # one box for each folder inside
CLASSES = {"engine": "root", "trainers": "leaf", "inspect": "exchange"}
INCLUDE = re.compile(r'^#include "([\w/]+)/[\w.]+"', re.MULTILINE)
WIDTH, BOX, HEIGHT, ROW = 1000, 150, 24, 54


def room_of(folder: str) -> str:
    parts = folder.split("/")
    return "/".join(parts[:2]) if parts[0] in SPLIT else parts[0]


def working_tree() -> dict[str, str]:
    files = [path for top in WHOLE + SPLIT for path in (ROOT / top).rglob("*") if path.suffix in (".h", ".cpp")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}


def at_commit(commit: str) -> dict[str, str]:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    names = git("ls-tree", "-r", "--name-only", commit).splitlines()
    wanted = [name for name in names if name.split("/")[0] in WHOLE + SPLIT and name.endswith((".h", ".cpp"))]
    return {name: git("show", f"{commit}:{name}") for name in wanted}


def uses_of(files: dict[str, str]) -> dict[str, set[str]]:
    """The rooms that each room includes."""
    uses: dict[str, set[str]] = {}
    for name, text in files.items():
        room = room_of(str(Path(name).parent))
        uses.setdefault(room, set()).update(room_of(folder) for folder in INCLUDE.findall(text))
    return {room: (others & set(uses)) - {room} for room, others in uses.items()}


def below(room: str, uses: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = [room]
    while todo:
        new = uses[todo.pop()] - found
        found |= new
        todo += new
    return found


def rooms_figure(files: dict[str, str] | None = None) -> str:
    uses = uses_of(files or working_tree())
    all_below = {room: below(room, uses) - {room} for room in uses}
    floors: dict[str, int] = {}
    for room in sorted(uses, key=lambda r: (len(all_below[r]), r)):
        floors[room] = 1 + max((floors[r] for r in all_below[room] if r in floors), default=-1)
    top = max(floors.values())
    drawing = Drawing(WIDTH, ROW * (top + 1) + 12, "Folders and their includes; each line points down")
    place = {}
    for floor in range(top + 1):
        row = sorted(room for room in floors if floors[room] == floor)
        for i, room in enumerate(row):
            place[room] = ((i + 0.5) * WIDTH / len(row), ROW * (top - floor) + 22)
    for room, others in sorted(uses.items()):
        for other in sorted(others):
            if any(other in all_below[between] for between in others - {other}):
                continue
            drawing.line("link", place[room][0], place[room][1] + HEIGHT, place[other][0], place[other][1])
    for room, (x, y) in sorted(place.items()):
        drawing.box(CLASSES.get(room.split("/")[0], "box"), x - BOX / 2, y, BOX, HEIGHT)
        drawing.text("title", x, y + 17, room)
    return drawing.svg()


if __name__ == "__main__":
    print(rooms_figure(at_commit(sys.argv[1])), end="")
