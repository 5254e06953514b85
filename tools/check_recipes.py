"""Fails unless each patch of docs/contributing applies, touches what its recipe lists, passes the lints and compiles.

usage: python3 tools/check_recipes.py BUILD_DIR

A recipe is a section of docs/contributing/README.md that links a patch; its first code block lists a file per line.
Each patch is applied to a copy of the tracked files. There the copy's own lints run, and the sources that it touches
are compiled with the flags that BUILD_DIR has for them or, where they are new, for their neighbors. CUDA kernels are
compiled by g++, as the emulator's are. Sources that BUILD_DIR leaves out, such as CUDA's, are left out here.
tests/long/newcomer.sh builds the patches and runs their tests.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check_tidy import ROOT, flags_of, tracked

FOLDER = Path("docs/contributing")
LINTS = ("layers", "ops", "size", "limits", "cuda_rules", "docs", "words")
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-unknown-pragmas", "-Werror"]
KIND = re.compile(r"(?:_(?:cpu|cuda|onednn|bench|test))?\.\w+$")  # files of one kind have the same flags


def recipes_of(text: str) -> dict[str, list[str]]:
    """Each patch that a section links, with the files that its first code block lists."""
    found = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        patch = re.search(r"\]\((\w+\.patch)\)", section)
        block = re.search(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        if patch:
            found[patch[1]] = [line.split()[0] for line in block[1].splitlines() if line] if block else []
    return found


def run(*command: str, cwd: Path) -> str:
    """The output of a command if it fails, else an empty text."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return f"{shlex.join(command[:4])}: exit code {done.returncode}\n{done.stdout}{done.stderr}"


def touched_by(patch: Path) -> list[str]:
    command = ["git", "apply", "--numstat", str(patch)]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [line.split("\t")[2] for line in said.stdout.splitlines()]


def emulator_flags(build: Path) -> tuple[str, ...] | None:
    """How a build compiles kernels for the host; nothing where it has no CUDA."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if "kernels_emulated_fast" in entry["command"] and entry["file"].endswith("_cuda.cu"):
            words = shlex.split(entry["command"])
            kept = [word for word in words if word.startswith(("-I", "-D", "-f", "-std"))]
            pairs = zip(words, words[1:])
            return (*kept, *(w for a, b in pairs if a in ("-isystem", "-include") for w in (a, b)), "-xc++")
    return None


class Compiler:
    def __init__(self, build: Path, copy: Path):
        self.known, self.kernels, self.build, self.copy = flags_of(build), emulator_flags(build), build.resolve(), copy

    def flags(self, name: str) -> tuple[str, ...] | None:
        """The flags of a file, or those of a similar file in its folder."""
        if name.endswith(".cu"):
            return self.kernels
        path = Path(name)
        kind = KIND.search(path.name)[0]
        alike = (n for n in self.known if Path(n).parent == path.parent and KIND.search(n)[0] == kind)
        return self.known.get(name) or self.known.get(next(alike, ""))

    def in_copy(self, word: str) -> str:
        return word if str(self.build) in word else word.replace(str(ROOT), str(self.copy))

    def finds(self, name: str, flags: tuple[str, ...]) -> str:
        words = [self.in_copy(word) for word in flags]
        return run("c++", "-fsyntax-only", "-O0", name, *words, *WARNINGS, cwd=self.copy)


def problems_of(patch: Path, listed: list[str], compiler: Compiler) -> tuple[list[str], list[str]]:
    """Problems, and the sources that were not compiled. Leaves the copy as it was."""
    copy, problems = compiler.copy, []
    if said := run("git", "apply", "--index", str(patch), cwd=copy):
        return [said], []
    touched = touched_by(patch)
    problems += [f"touches {name}, which the recipe does not list" for name in touched if name not in listed]
    problems += [f"does not touch {name}, which the recipe lists" for name in listed if name not in touched]
    problems += [run("python3", f"tools/check_{lint}.py", cwd=copy) for lint in LINTS]
    formatted = [name for name in touched if name.endswith((".h", ".cpp"))]
    problems.append(run("clang-format-19", "--dry-run", "-Werror", *formatted, cwd=copy))
    sources = {name: compiler.flags(name) for name in touched if name.endswith((".cpp", ".cu"))}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += pool.map(compiler.finds, *zip(*(item for item in sources.items() if item[1])))
    problems.append(run("git", "apply", "--index", "-R", str(patch), cwd=copy))
    return [problem for problem in problems if problem], [name for name, flags in sources.items() if not flags]


def copy_tracked(to: Path) -> None:
    for name in tracked():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, to / name)
    for command in ("init", "-q"), ("add", "-A"):
        subprocess.run(["git", *command], cwd=to, check=True)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    recipes = recipes_of((ROOT / FOLDER / "README.md").read_text(encoding="utf-8"))
    patches = sorted((ROOT / FOLDER).glob("*.patch"))
    failed = [f"{FOLDER}/{patch.name} has no recipe" for patch in patches if patch.name not in recipes]
    with tempfile.TemporaryDirectory() as folder:
        copy_tracked(Path(folder))
        compiler = Compiler(Path(sys.argv[1]), Path(folder))
        for name, listed in recipes.items():
            problems, left_out = problems_of(ROOT / FOLDER / name, listed, compiler)
            failed += [f"{name}: {problem}" for problem in problems]
            print(f"{name}: {len(listed)} files" + "".join(f", without {source}" for source in left_out))
    print("\n".join(failed) or f"{len(recipes)} patches apply and compile")
    return 1 if failed or not recipes else 0


if __name__ == "__main__":
    sys.exit(main())
