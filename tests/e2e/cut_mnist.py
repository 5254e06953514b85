"""Writes the first images of MNIST as files of its layout.

usage: python3 cut_mnist.py FROM TO TRAIN TEST: FROM holds the four files, packed with gzip or not
"""

import gzip
import struct
import sys
from pathlib import Path


def cut(source: Path, target: Path, count: int) -> None:
    found = source if source.exists() else source.with_name(f"{source.name}.gz")
    content = gzip.decompress(found.read_bytes()) if found.suffix == ".gz" else found.read_bytes()
    axes = content[3]
    of_one = 1
    for extent in struct.unpack_from(f">{axes - 1}I", content, 8):
        of_one *= extent
    head = 4 + 4 * axes
    target.write_bytes(content[:4] + struct.pack(">I", count) + content[8 : head + count * of_one])


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir()
    for prefix, count in (("train", sys.argv[3]), ("t10k", sys.argv[4])):
        for kind in ("images-idx3", "labels-idx1"):
            name = f"{prefix}-{kind}-ubyte"
            cut(source / name, target / name, int(count))


if __name__ == "__main__":
    main()
