"""Prints where Python's packages hold CUDA; nothing where there is none. Those of scripts/setup.sh cuda come before
this Python's own.

usage: python3 tools/nvidia_packages.py nvcc    nvcc's path (nvidia-cuda-nvcc)
       python3 tools/nvidia_packages.py 13      folders with include/ and lib/ of packages of CUDA 13, joined by ';'
"""

import sys
from importlib.util import find_spec
from pathlib import Path


SETUP = Path(__file__).absolute().parent.parent / "build" / "cuda" / "nvidia"


def nvidia_folders() -> list[Path]:
    spec = find_spec("nvidia")
    own = [Path(folder) for folder in (spec.submodule_search_locations or [] if spec else [])]
    return [folder for folder in [SETUP, *own] if folder.is_dir()]


def package_folders(nvidia: Path, cuda: str) -> list[Path]:
    """nvidia/cu13 is the toolkit's; nvidia/nccl says by nvidia_nccl_cu13-*.dist-info alone which CUDA it is of."""
    infos = sorted(nvidia.parent.glob(f"nvidia_*_cu{cuda}-*.dist-info"))
    names = [f"cu{cuda}"] + [info.name.removeprefix("nvidia_").split(f"_cu{cuda}-")[0] for info in infos]
    return [nvidia / name for name in names if (nvidia / name).is_dir()]


def main() -> int:
    if sys.argv[1] == "nvcc":
        found = [nvcc for nvidia in nvidia_folders() for nvcc in sorted(nvidia.glob("cu*/bin/nvcc"))[-1:]][:1]
    else:
        found = [folder for nvidia in nvidia_folders() for folder in package_folders(nvidia, sys.argv[1])]
    print(";".join(map(str, found)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
