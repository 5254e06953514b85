"""Fails when an #include points against the arrows of ARCHITECTURE.md, a library's header is used outside its home,
a layer below the programs names a flag, or folders inside a folder include each other in a cycle.

usage: python3 tools/check_layers.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

MAY_INCLUDE = {
    "core": {"core"},
    "kernels": {"kernels", "core"},
    "comm": {"comm", "kernels", "core"},
    "data": {"data", "core"},
    "nn": {"nn", "kernels", "core"},
    "engine": {"engine", "nn", "comm", "data", "kernels", "core"},
    "trainers": {"trainers", "engine", "nn", "comm", "data", "kernels", "core"},
    "inspect": {"inspect", "trainers", "engine", "nn", "comm", "data", "kernels", "core"},
    "tests": {"tests", "bench", "inspect", "trainers", "engine", "nn", "comm", "data", "kernels", "core"},
    "bench": {"bench", "trainers", "engine", "nn", "comm", "data", "kernels", "core", "tests"},
    "examples": set(),  # they see what is installed, and the files beside them
}

# Library header -> the files that may include it.
HOMES = {
    r"mpi\.h": r"comm/messages/mpi_.*|tests/mpi/.*",
    r"(oneapi/)?dnnl.*": r"kernels/.*onednn.*",
    r"omp\.h": r"(tests/)?kernels/.*onednn.*",
    r"CLI/.*": r"((trainers|inspect)/.*|bench/flags)\.cpp",
    r"nlohmann/.*": r"(?!engine/).*\.cpp|tests/.*|trainers/config/file_json\.h",
    r"xxhash\.h": r"core/digest\.cpp",
    r"Eigen/.*": r"nn/eigenpairs\.cpp",
    r"(cuda_|driver_types|vector_types|nvtx3/).*": (
        r"core/cuda/.*|kernels/.*\.cuh?|kernels/support/cu(dnn|blaslt)/.*|bench/kernels/op_bench\.cpp"
        r"|tests/(cuda|emulation)/.*"
    ),
    r"cudnn.*": r"(kernels/support/cudnn|tests/emulation/cudnn|tests/cudnn)/.*",
    r"cublasLt\.h": r"(kernels/support|tests/emulation)/cublaslt/.*",
    r"nccl\.h": r"(comm|tests/emulation)/nccl/.*",
    r"boost/.*": r"tests/emulation/fiber\.h",
    r"zlib\.h": r"data/.*\.cpp|tests/.*",
    r"jpeglib\.h|png\.h": r"data/codecs/.*\.cpp|tests/data/decode_image_test\.cpp",
}

# An error's text there is for callers of the library; a program's flags are its own (Remedy, core/error.h).
WITHOUT_FLAGS = {"engine", "core", "kernels", "nn", "comm", "data"}
# What only a program does: it reads its environment, prints, and ends.
PROGRAMS_CALLS = "getenv|setenv|printf|fprintf|puts|print|cout|cerr|raise|signal|sigaction|exit|abort"
PROGRAMS_CALL = re.compile(rf"\b({PROGRAMS_CALLS})\b *[(<]")
COMMANDS = "cmake|docker|nvidia-smi|srun|ulimit"  # whose flags are nobody's but theirs
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
BETWEEN_LITERALS = re.compile(r'(?<!\\)"\s*"')
FLAG = re.compile(r"(?<![\w-])-(?:-[a-z][\w-]*|[A-Za-z](?!\w))")

COMMENT = re.compile(r"^\s*//.*", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def flags_in(text: str) -> list[str]:
    """The flags that string literals name, except those after another program's name."""
    code = re.sub(r"^\s*#\s*include.*", "", COMMENT.sub("", text), flags=re.MULTILINE)
    literals = LITERAL.findall(BETWEEN_LITERALS.sub("", code))
    known = re.compile(rf"\b(?:{COMMANDS})\b[^;,]*")
    return [flag for literal in literals for flag in FLAG.findall(known.sub("", literal))]


def problems_of(name: str, text: str) -> list[str]:
    folder = name.split("/")[0]
    found = []
    if folder in WITHOUT_FLAGS:
        found += [f"{name}: a literal names the flag {flag}, which is a program's to say" for flag in flags_in(text)]
    if folder == "engine":
        calls = PROGRAMS_CALL.findall(COMMENT.sub("", text))
        found += [f"{name}: calls {call}, which is a program's to do" for call in calls]
    for quote, target in INCLUDE.findall(text):
        beside = folder == "examples" and "/" not in target
        if quote == '"' and target.split("/")[0] not in MAY_INCLUDE[folder] and not beside:
            found.append(f'{name}: {folder} may not include "{target}"')
        for header, home in HOMES.items():
            if re.fullmatch(header, target) and not re.fullmatch(home, name):
                found.append(f"{name}: <{target}> belongs into {home}")
    return found


# Files of these folders themselves are used by their inner folders and use them; elsewhere they count as a folder.
FOLDERS_WITH_OWN_FILES = {"core", "comm", "kernels", "kernels/support"}


def inner_edges(files: dict[str, str]) -> dict[str, dict[str, dict[str, str]]]:
    """For each folder: which inner folder ("." for its own files) includes which, with one such include."""
    edges: dict[str, dict[str, dict[str, str]]] = {}
    for name, text in sorted(files.items()):
        for quote, target in INCLUDE.findall(text):
            here, there = name.split("/")[:-1], target.split("/")[:-1]
            if quote != '"' or not there or here[0] != there[0]:
                continue
            shared = zip(here, there)
            same = next((i for i, (a, b) in enumerate(shared) if a != b), min(len(here), len(there)))
            source, used = ((*path[same:], ".")[0] for path in (here, there))
            parent = "/".join(here[:same])
            if source == used or ("." in (source, used) and parent in FOLDERS_WITH_OWN_FILES):
                continue
            edges.setdefault(parent, {}).setdefault(source, {}).setdefault(used, f'{name} includes "{target}"')
    return edges


def cycle_in(edges: dict[str, dict[str, str]]) -> list[str]:
    """The includes of one cycle; empty: there is none."""
    finished: set[str] = set()

    def search(path: list[str]) -> list[str]:
        for used in edges.get(path[-1], {}):
            if used in path:
                cycle = path[path.index(used) :] + [used]
                return [edges[a][b] for a, b in zip(cycle, cycle[1:])]
            if used not in finished and (found := search([*path, used])):
                return found
        finished.add(path[-1])
        return []

    return next((found for folder in edges if (found := search([folder]))), [])


def cycles(files: dict[str, str]) -> list[str]:
    """A problem for each folder whose inner folders include each other in a cycle."""
    found = {parent: cycle_in(edges) for parent, edges in inner_edges(files).items()}
    return [f"{parent}: its folders include each other: {'; '.join(way)}" for parent, way in found.items() if way]


def main() -> int:
    suffixes = {".h", ".cpp", ".cu", ".cuh"}
    files = [p for folder in MAY_INCLUDE for p in (ROOT / folder).rglob("*") if p.suffix in suffixes]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(files)}
    problems = [problem for name, text in texts.items() for problem in problems_of(name, text)] + cycles(texts)
    print("\n".join(problems) or f"{len(files)} files keep the layers")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
