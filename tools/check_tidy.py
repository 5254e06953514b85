"""Fails when clang-tidy finds fault with a source file of the engine.

usage: python3 tools/check_tidy.py BUILD_DIR

Most of clang-tidy's time goes into the headers of libraries, so the files of a folder that are compiled
with the same flags are looked at together, as one source that includes them. Where that finds anything (two
files may use one name), each half is looked at again, down to single files: only what is found there
counts. What passed is not looked at again until it, a header or the settings change.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["core", "kernels", "nn", "comm", "data", "trainers", "bench"]
# The shim needs omp.h, which clang has none of; *_absent.cpp are no part of a build that has all.
CLANG_TIDY = "build/tools/clang_tidy/data/bin/clang-tidy"  # scripts/setup.sh test puts it there
EXCLUDED = ("onednn_shim.cpp", "_absent.cpp", "bench/kernels/")
TOGETHER = 12


def tracked(*patterns: str) -> list[str]:
    found = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return found.stdout.split()


def flags_of(build: Path) -> dict[str, tuple[str, ...]]:
    """Each file's include paths, definitions and instruction set, from compile_commands.json."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words, kept = shlex.split(entry["command"]), ["-std=c++20"]
        for word, following in zip(words, words[1:] + [""]):
            if word in ("-I", "-isystem", "-include"):
                kept += [word, str((Path(entry["directory"]) / following).resolve())]
            elif word.startswith("-I"):
                kept.append("-I" + str((Path(entry["directory"]) / word[2:]).resolve()))
            elif word.startswith(("-D", "-m", "-f")) and not word.startswith("-fno-canonical"):
                kept.append(word)
        flags[os.path.relpath(entry["file"], ROOT)] = tuple(kept)
    return flags


class Tidy:
    def __init__(self, build: Path):
        self.stamps, self.work = build / "tidy-stamps", build / "tidy"
        self.stamps.mkdir(exist_ok=True)
        self.work.mkdir(exist_ok=True)
        self.shared = hashlib.sha256()
        for name in tracked("*.h", ".clang-tidy", "tools/check_tidy.py"):
            self.shared.update((ROOT / name).read_bytes())

    def finds(self, files: list[str], flags: tuple[str, ...]) -> str:
        """What clang-tidy says of `files`: nothing where they are in order."""
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
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if not (ROOT / CLANG_TIDY).exists():
        print(f"no {CLANG_TIDY}: `scripts/setup.sh test` takes it from PyPI", file=sys.stderr)
        return 1
    build = Path(sys.argv[1])
    known, groups = flags_of(build), defaultdict(list)
    for name in tracked(*FOLDERS):
        if name.endswith(".cpp") and not any(part in name for part in EXCLUDED) and name in known:
            groups[Path(name).parent, known[name]].append(name)
    tidy, jobs = Tidy(build), []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, flags), files in groups.items():
            parts = -(-len(files) // TOGETHER)
            jobs += [pool.submit(tidy.finds, files[part::parts], flags) for part in range(parts)]
    said = "".join(job.result() for job in jobs)
    print(said or f"{sum(map(len, groups.values()))} files, no finding")
    return 1 if said or not groups else 0


if __name__ == "__main__":
    sys.exit(main())
