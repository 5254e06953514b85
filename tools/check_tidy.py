"""Fails when clang-tidy finds fault with a source file of the engine.

usage: python3 tools/check_tidy.py [--all] BUILD_DIR

It looks at what differs from the commit in tools/tidy_checked.txt, and at what includes that; at everything where
clang-tidy's version or settings changed. --all looks at everything and, where that passes, rewrites the file.
Most of clang-tidy's time goes into the headers of libraries, so the files of a folder that are compiled
with the same flags are looked at together, as one source that includes them. Where that finds anything (two
files may use one name), each half is looked at again, down to single files: only what is found there
counts. What passed is not looked at again until it, a header or the settings change.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["core", "kernels", "nn", "comm", "data", "trainers", "inspect", "engine", "bench"]
# The shim needs omp.h, which clang has none of; *_absent.cpp are no part of a build that has all.
CLANG_TIDY = "build/tools/clang_tidy/data/bin/clang-tidy"  # scripts/setup.sh test puts it there
EXCLUDED = ("onednn/shim.cpp", "_absent.cpp", "bench/kernels/")
TOGETHER = 12
CHECKED = ROOT / "tools" / "tidy_checked.txt"  # the commit and the settings with which all files passed


def tracked(*patterns: str) -> list[str]:
    found = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return found.stdout.split()


def sources_of(entry: dict) -> list[str]:
    """The files that one command compiles: those that a unity source includes, or the one that it names."""
    source = Path(entry["file"])
    if "Unity" in source.parts:
        return re.findall(r'^#include "(/.+\.cpp)"', source.read_text(), re.MULTILINE)
    return [entry["file"]]


def flags_of(build: Path) -> dict[str, tuple[str, ...]]:
    """Each file's include paths, definitions and instruction set, from compile_commands.json; no precompiled header,
    so that a file includes what it needs."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words, kept = shlex.split(entry["command"]), ["-std=c++20"]
        for word, following in zip(words, words[1:] + [""]):
            if word in ("-I", "-isystem", "-include"):
                if "cmake_pch" not in following:
                    kept += [word, str((Path(entry["directory"]) / following).resolve())]
            elif word.startswith("-I"):
                kept.append("-I" + str((Path(entry["directory"]) / word[2:]).resolve()))
            elif word.startswith(("-D", "-m", "-f")) and not word.startswith("-fno-canonical"):
                kept.append(word)
        for source in sources_of(entry):
            flags[os.path.relpath(source, ROOT)] = tuple(kept)
    return flags


def settings_digest() -> str:
    """Digest of everything besides the sources that decides clang-tidy's output."""
    digest = hashlib.sha256()
    for name in (".clang-tidy", "tools/check_tidy.py"):
        digest.update((ROOT / name).read_bytes())
    digest.update(re.search(r"clang-tidy==\S+", (ROOT / "scripts/setup.sh").read_text())[0].encode())
    return digest.hexdigest()[:16]


def includes_of(name: str) -> list[str]:
    return re.findall(r'^#include "([^"]+)"', (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)


def touched_by(changed: set[str], files: list[str]) -> list[str]:
    """The files among `files` that changed or include a changed header, directly or indirectly."""
    users = defaultdict(set)
    for name in tracked("*.h", *files):
        for header in includes_of(name):
            users[header].add(name)
    found, waiting = set(), list(changed)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += users[name]
    return [name for name in files if name in found]


def changed_since_checked() -> set[str] | None:
    """The files that differ from the commit at which all were checked; None if all must be checked."""
    if not CHECKED.exists():
        return None
    commit, settings = CHECKED.read_text().split()
    diff = subprocess.run(["git", "diff", "--name-only", commit], cwd=ROOT, capture_output=True, text=True)
    if diff.returncode != 0 or settings != settings_digest():
        return None
    return set(diff.stdout.split())


class Tidy:
    def __init__(self, build: Path):
        self.stamps, self.work = build / "tidy-stamps", build / "tidy"
        self.stamps.mkdir(exist_ok=True)
        self.work.mkdir(exist_ok=True)
        self.shared = hashlib.sha256()
        for name in tracked("*.h", ".clang-tidy", "tools/check_tidy.py"):
            self.shared.update((ROOT / name).read_bytes())

    def finds(self, files: list[str], flags: tuple[str, ...]) -> str:
        """The findings of clang-tidy in `files`; empty if there are none."""
        digest = self.shared.copy()
        for name in files:
            digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
        stamp = self.stamps / digest.hexdigest()[:32]
        if stamp.exists():
            return ""
        source = ROOT / files[0]
        if len(files) > 1:
            source = self.work / f"{stamp.name}.cpp"
            source.write_text("".join(f'#include "{ROOT / name}"  // NOLINT\n' for name in files))
        said = subprocess.run(
            [str(ROOT / CLANG_TIDY), "--quiet", f"--config-file={ROOT / '.clang-tidy'}",
             str(source), "--", *flags, "-Wno-error", "-Wno-pragma-once-outside-header"],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
        if said.returncode == 0:
            stamp.touch()
            return ""
        if len(files) == 1:
            return said.stdout + said.stderr
        half = len(files) // 2
        return self.finds(files[:half], flags) + self.finds(files[half:], flags)


def main() -> int:
    arguments = sys.argv[1:]
    whole = "--all" in arguments
    if len(arguments) != 1 + whole:
        print(__doc__, file=sys.stderr)
        return 2
    if not (ROOT / CLANG_TIDY).exists():
        print(f"no {CLANG_TIDY}: `scripts/setup.sh test` takes it from PyPI", file=sys.stderr)
        return 1
    build = Path(arguments[-1])
    known, groups = flags_of(build), defaultdict(list)
    engine = [name for name in tracked(*FOLDERS) if name.endswith(".cpp") and name in known]
    engine = [name for name in engine if not any(part in name for part in EXCLUDED)]
    changed = None if whole else changed_since_checked()
    for name in engine if changed is None else touched_by(changed, engine):
        groups[Path(name).parent, known[name]].append(name)
    tidy, jobs = Tidy(build), []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, flags), files in groups.items():
            parts = -(-len(files) // TOGETHER)
            jobs += [pool.submit(tidy.finds, files[part::parts], flags) for part in range(parts)]
    said = "".join(job.result() for job in jobs)
    print(said or f"{sum(map(len, groups.values()))} of {len(engine)} files looked at, no finding")
    if whole and not said:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        CHECKED.write_text(f"{head.strip()} {settings_digest()}\n")
    return 1 if said or not engine else 0


if __name__ == "__main__":
    sys.exit(main())
