"""tools/plot_allreduce.py on small results: the drawing is well-formed and its points stand where they should."""

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parent.parent.parent
SVG = "{http://www.w3.org/2000/svg}"


def row(algorithm: str, size: int, time: float, bandwidth: float, median: float = 0) -> dict:
    side = {"time": time, "alg_bw": bandwidth, "bus_bw": bandwidth, "nwrong": 0}
    result = {"size": size, "algorithm": algorithm, "in_place": side, "out_of_place": side}
    return result | ({"in_place_per_iter": {"p50_us": median}} if median else {})


def draw(rows: list[dict], transport: str = "shm") -> tuple[int, Optional[ElementTree.Element]]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.json"), Path(folder, "out.svg")
        config = {"transport": transport, "devices": [{}, {}]}
        source.write_text(json.dumps({"config": config, "results": rows}))
        line = [sys.executable, str(ROOT / "tools" / "plot_allreduce.py"), str(source), "-o", str(target)]
        code = subprocess.run(line, capture_output=True).returncode
        return code, ElementTree.parse(target).getroot() if target.exists() else None


def lines(svg: ElementTree.Element) -> list[list[tuple[float, float]]]:
    found = [line.get("points").split() for line in svg.iter(SVG + "polyline")]
    return [[tuple(map(float, point.split(","))) for point in points] for points in found]


class PlotAllreduce(unittest.TestCase):
    def test_one_line_an_algorithm_in_each_panel(self):
        rows = [row(name, size, 10, 1) for name in ("tree", "ring") for size in (4, 1024, 2**20)]
        code, svg = draw(rows)
        self.assertEqual(code, 0)
        self.assertEqual([len(line) for line in lines(svg)], [3, 3, 3, 3])
        texts = [text.text for text in svg.iter(SVG + "text")]
        self.assertIn("tree, shm, 2 ranks", texts)
        self.assertIn("ring, shm, 2 ranks", texts)
        for x, y in sum(lines(svg), []):
            self.assertTrue(0 <= x <= float(svg.get("width")) and 0 <= y <= float(svg.get("height")))

    def test_axes_are_logarithmic(self):
        _, svg = draw([row("tree", 4**k, 10.0**k, 10.0**k) for k in range(1, 4)])
        for first, second, third in lines(svg):
            self.assertAlmostEqual(second[0] - first[0], third[0] - second[0], delta=0.2)
            self.assertAlmostEqual(second[1] - first[1], third[1] - second[1], delta=0.2)
            self.assertLess(second[1], first[1], "larger values stand higher")

    def test_the_median_is_drawn_where_there_is_one(self):
        _, with_outlier = draw([row("tree", 4, 1000, 0.1, median=100), row("tree", 16, 100, 1)])
        (first, second), _ = lines(with_outlier)
        self.assertAlmostEqual(first[1], second[1], delta=0.1)

    def test_one_point_is_enough_and_names_are_escaped(self):
        code, svg = draw([row("a<b&c", 4096, 1, 4)], transport='"x"')
        self.assertEqual(code, 0)
        self.assertIn('a<b&c, "x", 2 ranks', [text.text for text in svg.iter(SVG + "text")])

    def test_nothing_to_draw_is_said(self):
        self.assertEqual(draw([row("tree", 0, 1, 0), row("tree", 4, 1, 0)]), (1, None))


if __name__ == "__main__":
    unittest.main()
