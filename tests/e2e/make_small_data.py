"""Writes small data for quick commands: random MNIST files in torchvision's layout, and photos of two classes.

usage: python3 make_small_data.py FOLDER: FOLDER/data/MNIST/raw and FOLDER/photos/{train,val}/{ants,bees}/*.png
"""

import random
import struct
import sys
import zlib
from pathlib import Path

TRAIN_IMAGES, TEST_IMAGES, SIDE = 256, 64, 28
TRAIN_PHOTOS, VAL_PHOTOS, PHOTO_SIDE = 16, 4, 40  # per class


def idx(shape: tuple[int, ...], values: bytes) -> bytes:
    return struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape) + values


def png(side: int, pixels: random.Random, shift: int) -> bytes:
    """An image of noise, darkened by `shift` bits."""
    rows = b"".join(b"\0" + bytes(value >> shift for value in pixels.randbytes(3 * side)) for _ in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)  # 8 bits, RGB
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def main() -> None:
    folder, source = Path(sys.argv[1]), random.Random(1)
    raw = folder / "data/MNIST/raw"
    raw.mkdir(parents=True)
    for prefix, count in (("train", TRAIN_IMAGES), ("t10k", TEST_IMAGES)):
        pixels = source.randbytes(count * SIDE * SIDE)
        (raw / f"{prefix}-images-idx3-ubyte").write_bytes(idx((count, SIDE, SIDE), pixels))
        labels = bytes(source.randrange(10) for _ in range(count))
        (raw / f"{prefix}-labels-idx1-ubyte").write_bytes(idx((count,), labels))
    for split, count in (("train", TRAIN_PHOTOS), ("val", VAL_PHOTOS)):
        for shift, name in enumerate(("ants", "bees")):  # the classes differ, so that there is something to learn
            photos = folder / "photos" / split / name
            photos.mkdir(parents=True)
            for number in range(count):
                (photos / f"{number}.png").write_bytes(png(PHOTO_SIDE, source, shift))


if __name__ == "__main__":
    main()
