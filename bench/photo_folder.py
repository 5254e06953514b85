"""Makes a folder of JPEG files in two classes, to time a training on photos.

usage: python3 bench/photo_folder.py FOLDER COUNT SIDE: FOLDER/{train,val}/{ants,bees}, COUNT files to train on

With PIL they are smooth random pictures of SIDE pixels, which cost a decoder about what photos of that size cost.
Without it they are the few small files of tests/golden, again and again, which say only that the way works.
"""

import io
import json
import random
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "image_files.safetensors"


def painted(side: int) -> list[bytes]:
    from PIL import Image  # raises ImportError

    pictures, source = [], random.Random(1)
    for _ in range(16):
        noise = Image.frombytes("RGB", (side // 4, side // 4), source.randbytes(3 * (side // 4) ** 2))
        file = io.BytesIO()
        noise.resize((side, side), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
        pictures.append(file.getvalue())
    return pictures


def golden() -> list[bytes]:
    """The JPEG files among the test's images, which lie in one safetensors file."""
    data = GOLDEN.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    places = [header[name]["data_offsets"] for name in header if name.startswith("jpeg_4") and name.endswith(".file")]
    return [data[start + begin : start + end] for begin, end in places]


def main() -> None:
    folder, count, side = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    try:
        pictures = painted(side)
    except ImportError:
        print("no PIL: small files stand for photos, and their speed says nothing")
        pictures = golden()
    for split, files in (("train", count), ("val", max(2, count // 20))):
        for at in range(files):
            place = folder / split / ("ants", "bees")[at % 2]
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{at}.jpg").write_bytes(pictures[at % len(pictures)])


if __name__ == "__main__":
    main()
