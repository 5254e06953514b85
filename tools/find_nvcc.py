"""Prints the path of nvcc inside this Python's packages (nvidia-cuda-nvcc); nothing where there is none."""

from importlib.util import find_spec
from pathlib import Path

spec = find_spec("nvidia")
folders = list(spec.submodule_search_locations or []) if spec else []
found = sorted(nvcc for folder in folders for nvcc in Path(folder).glob("cu*/bin/nvcc"))
print(found[-1] if found else "", end="")
