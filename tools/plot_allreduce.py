"""Draws time and bus bandwidth over size from bench_allreduce's -J files as SVG, one line an algorithm.

usage: python3 tools/plot_allreduce.py RESULT.json... [-o allreduce.svg] [--side in_place|out_of_place]

Times are medians; where a file has none, as those of nccl-tests' own all_reduce_perf may, its mean is drawn. All
axes are logarithmic.
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#888888"]
WIDTH, PANEL_HEIGHT, LEFT, RIGHT, TOP, GAP = 760, 280, 70, 20, 40, 60


@dataclass
class Line:
    label: str
    sizes: list[int]
    times: list[float]  # microseconds
    bandwidths: list[float]  # GB/s


@dataclass
class Axis:
    """A logarithmic axis between whole powers of its base."""

    low: float
    high: float
    start: float  # in pixels, of `low`
    end: float
    base: int

    @classmethod
    def around(cls, values: list[float], start: float, end: float, base: int) -> "Axis":
        low = math.floor(math.log(min(values), base) + 1e-9)
        high = math.ceil(math.log(max(values), base) - 1e-9)
        return cls(low, max(high, low + 1), start, end, base)

    def at(self, value: float) -> float:
        share = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 10) -> list[float]:
        step = max(1, math.ceil((self.high - self.low) / most))
        return [float(self.base) ** power for power in range(int(self.low), int(self.high) + 1, step)]


def lines_of(paths: list[Path], side: str) -> list[Line]:
    lines = []
    for path in paths:
        run = json.loads(path.read_text(encoding="utf-8"))
        suffix = f", {run['config'].get('transport', 'nccl')}, {len(run['config']['devices'])} ranks"
        found: dict[str, Line] = {}
        for row in run["results"]:
            name = row.get("algorithm", "all-reduce")
            line = found.setdefault(name, Line(name + suffix, [], [], []))
            mean, bandwidth = row[side]["time"], row[side]["bus_bw"]
            time = row.get(f"{side}_per_iter", {}).get("p50_us", mean)
            if row["size"] > 0 and time > 0 and bandwidth > 0:
                line.sizes.append(row["size"])
                line.times.append(time)
                line.bandwidths.append(bandwidth * mean / time)
        lines += [line for line in found.values() if line.sizes]
    return lines


def size_text(size: float) -> str:
    for unit, bytes_of_unit in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if size >= bytes_of_unit:
            return f"{size / bytes_of_unit:g}{unit}"
    return f"{size:g}"


def text(x: float, y: float, what: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(what)}</text>'


def grid(x: Axis, y: Axis, title: str) -> list[str]:
    parts = [text(x.start, y.end - 10, title, "start", ' font-weight="bold"')]
    for tick in x.ticks():
        at = x.at(tick)
        parts.append(f'<path class="grid" d="M{at:.1f} {y.start:.1f}V{y.end:.1f}"/>')
        parts.append(text(at, y.start + 18, size_text(tick)))
    for tick in y.ticks():
        at = y.at(tick)
        parts.append(f'<path class="grid" d="M{x.start:.1f} {at:.1f}H{x.end:.1f}"/>')
        parts.append(text(x.start - 8, at + 4, f"{tick:,.0f}" if tick >= 1 else f"{tick:g}", "end"))
    return parts


def curve(x: Axis, y: Axis, sizes: list[int], values: list[float], color: str) -> list[str]:
    points = [(x.at(size), y.at(value)) for size, value in sorted(zip(sizes, values))]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dots = [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>' for a, b in points]
    return [f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>', *dots]


def panel(lines: list[Line], values: list[list[float]], top: float, title: str) -> list[str]:
    x = Axis.around([size for line in lines for size in line.sizes], LEFT, WIDTH - RIGHT, 2)
    y = Axis.around([value for row in values for value in row], top + PANEL_HEIGHT, top, 10)
    parts = grid(x, y, title)
    for index, (line, row) in enumerate(zip(lines, values)):
        parts += curve(x, y, line.sizes, row, COLORS[index % len(COLORS)])
    return parts


def legend(lines: list[Line], top: float) -> list[str]:
    parts = []
    for index, line in enumerate(lines):
        y, color = top + 20 * index, COLORS[index % len(COLORS)]
        parts.append(f'<path d="M{LEFT} {y - 4}h24" stroke="{color}" stroke-width="2"/>')
        parts.append(text(LEFT + 32, y, line.label, "start"))
    return parts


def svg(lines: list[Line], side: str) -> str:
    second = TOP + PANEL_HEIGHT + GAP
    end = second + PANEL_HEIGHT + GAP
    height = end + 20 * len(lines)
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        "<style>.grid{stroke:#ddd;fill:none}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        *panel(lines, [line.times for line in lines], TOP, f"time, µs ({side.replace('_', ' ')})"),
        *panel(lines, [line.bandwidths for line in lines], second, "bus bandwidth, GB/s"),
        text((LEFT + WIDTH - RIGHT) / 2, second + PANEL_HEIGHT + 36, "size, bytes"),
        *legend(lines, end),
        "</svg>",
    ]
    return "\n".join(body) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULT.json")
    parser.add_argument("-o", "--output", type=Path, default=Path("allreduce.svg"))
    parser.add_argument("--side", choices=["in_place", "out_of_place"], default="in_place")
    args = parser.parse_args()
    lines = lines_of(args.results, args.side)
    if not lines:
        print("nothing to draw: no result has more than zero bytes and more than one rank", file=sys.stderr)
        return 1
    args.output.write_text(svg(lines, args.side), encoding="utf-8")
    print(f"wrote {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
