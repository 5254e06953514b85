"""Fails when an #include points against the arrows of ARCHITECTURE.md, or a library's header is used outside its home.

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
    "trainers": {"trainers", "nn", "comm", "data", "kernels", "core"},
    "tests": {"tests", "bench", "trainers", "nn", "comm", "data", "kernels", "core"},
    "bench": {"bench", "trainers", "nn", "comm", "data", "kernels", "core", "tests"},
}

# Library header -> the files that may include it.
HOMES = {
    r"mpi\.h": r"comm/messages/mpi_.*|tests/mpi/.*",
    r"(oneapi/)?dnnl.*": r"kernels/.*onednn.*",
    r"omp\.h": r"kernels/.*onednn.*",
    r"CLI/.*": r"(trainers/.*|bench/flags)\.cpp",
    r"nlohmann/.*": r".*\.cpp|tests/.*",
    r"xxhash\.h": r"core/digest\.cpp",
    r"(cuda_|driver_types|vector_types|nvtx3/).*": (
        r"core/cuda/.*|kernels/.*\.cuh?|kernels/cu(dnn|blaslt)/.*|bench/kernels/cuda_.*|tests/(cuda|emulation)/.*"
    ),
    r"cudnn.*": r"kernels/cudnn/.*",
    r"cublasLt\.h": r"(kernels|tests/emulation)/cublaslt/.*",
    r"nccl\.h": r"(comm|tests/emulation)/nccl/.*",
    r"boost/.*": r"tests/emulation/fiber\.h",
    r"zlib\.h": r"data/.*\.cpp|tests/.*",
    r"jpeglib\.h|png\.h": r"data/codecs/.*\.cpp",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def problems_of(path: Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    folder = name.split("/")[0]
    found = []
    for quote, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if quote == '"' and target.split("/")[0] not in MAY_INCLUDE[folder]:
            found.append(f'{name}: {folder} may not include "{target}"')
        for header, home in HOMES.items():
            if re.fullmatch(header, target) and not re.fullmatch(home, name):
                found.append(f"{name}: <{target}> belongs into {home}")
    return found


def main() -> int:
    suffixes = {".h", ".cpp", ".cu", ".cuh"}
    files = [p for folder in MAY_INCLUDE for p in (ROOT / folder).rglob("*") if p.suffix in suffixes]
    problems = [problem for path in sorted(files) for problem in problems_of(path)]
    print("\n".join(problems) or f"{len(files)} files keep the include direction")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
