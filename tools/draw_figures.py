"""Draws the figures of the documents as SVG files that follow the reader's light or dark colors.

usage: python3 tools/draw_figures.py

docs/tree.svg: one sum over eight shards, on one rank and on four. docs/step.svg: what runs when in a training step.
docs/rooms.svg: which folder includes which (tools/draw_rooms.py).
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIGHT = {"panel": "#ffffff", "border": "#d0d7de", "text": "#1f2328", "faint": "#59636e", "box": "#f6f8fa",
         "leaf": "#ddf4ff", "leaf_line": "#0969da", "root": "#dafbe1", "root_line": "#1a7f37", "link": "#818b98",
         "wire": "#bc4c00", "wire_fill": "#fff1e5"}  # fmt: skip
DARK = {"panel": "#0d1117", "border": "#3d444d", "text": "#f0f6fc", "faint": "#9198a1", "box": "#151b23",
        "leaf": "#121d2f", "leaf_line": "#4493f8", "root": "#12261e", "root_line": "#3fb950", "link": "#656c76",
        "wire": "#db6d28", "wire_fill": "#2a1d12"}  # fmt: skip


def style(colors: dict) -> str:
    return """
  .panel {{ fill: {panel}; stroke: {border}; }}
  text {{ fill: {text}; font: 13px sans-serif; text-anchor: middle; }}
  .left {{ text-anchor: start; }} .title {{ font-weight: bold; }} .note {{ fill: {faint}; font-size: 12px; }}
  .box {{ fill: {box}; stroke: {border}; }}
  .leaf {{ fill: {leaf}; stroke: {leaf_line}; }}
  .node {{ fill: {panel}; stroke: {link}; }}
  .root {{ fill: {root}; stroke: {root_line}; stroke-width: 2; }}
  .link {{ stroke: {link}; stroke-width: 1.5; fill: none; }}
  .wire {{ stroke: {wire}; stroke-width: 2; fill: none; }} .exchange {{ fill: {wire_fill}; stroke: {wire}; }}
""".format(**colors)


class Drawing:
    """An SVG picture; coordinates are in pixels from the upper left corner."""

    def __init__(self, width: int, height: int, description: str):
        light, dark = style(LIGHT), style(DARK).replace("\n  ", "\n    ").rstrip()
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img">',
            f"<title>{description}</title>",
            f"<style>{light}  @media (prefers-color-scheme: dark) {{{dark}\n  }}\n</style>",
        ]
        self.box("panel", 0.5, 0.5, width - 1, height - 1)

    def box(self, name: str, x: float, y: float, width: float, height: float) -> None:
        self.parts.append(f'<rect class="{name}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>')

    def circle(self, name: str, x: float, y: float, radius: float) -> None:
        self.parts.append(f'<circle class="{name}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>')

    def text(self, name: str, x: float, y: float, words: str) -> None:
        self.parts.append(f'<text class="{name}" x="{x:g}" y="{y:g}">{words}</text>')

    def line(self, name: str, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(f'<path class="{name}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>')

    def arrow(self, name: str, x1: float, y1: float, x2: float, y2: float) -> None:
        """Draws an arrow straight down or up."""
        back = -6 if y2 > y1 else 6
        head = f"M{x2 - 4:g} {y2 + back:g}L{x2:g} {y2:g}L{x2 + 4:g} {y2 + back:g}"
        self.parts.append(f'<path class="{name}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}{head}"/>')

    def svg(self) -> str:
        return "\n".join([*self.parts, "</svg>\n"])


def tree_merges(leaves: int) -> list[tuple[int, int]]:
    """Pairs (into, from), children before parents: for_each_tree_merge of core/tree.h."""
    merges, stride = [], 1
    while stride < leaves:
        merges += [(into, into + stride) for into in range(0, leaves - stride, 2 * stride)]
        stride *= 2
    return merges


SHARDS = 8


def draw_tree(drawing: Drawing, left: float, ranks: int) -> tuple[float, float]:
    """One panel: the ranks' boxes, the shards in them and the sums above. Returns the place of the root."""
    step, floor, rise = 46, 246, 50
    per_rank = SHARDS // ranks
    for rank in range(ranks):
        x = left + rank * per_rank * step + 3
        levels = len(tree_merges(per_rank)).bit_length()
        top = floor - levels * rise - 24
        drawing.box("box", x, top, per_rank * step - 6, floor + 46 - top)
        drawing.text("note", x + per_rank * step / 2 - 3, floor + 38, f"rank {rank}")
    places = {shard: (left + (shard + 0.5) * step, float(floor)) for shard in range(SHARDS)}
    links, sums = [], []
    for into, other in tree_merges(SHARDS):
        (x1, y1), (x2, y2) = places[into], places[other]
        place = ((x1 + x2) / 2, min(y1, y2) - rise)
        crosses = into // per_rank != other // per_rank
        links += [("wire" if crosses else "link", *place, x, y) for x, y in ((x1, y1), (x2, y2))]
        places[into] = place
        sums.append(place)
    for link in links:
        drawing.line(*link)
    for place in sums:
        is_root = place == places[0]
        drawing.circle("root" if is_root else "node", *place, 14 if is_root else 10)
        drawing.text("", place[0], place[1] + 5, "+")
    for shard in range(SHARDS):
        drawing.box("leaf", left + (shard + 0.5) * step - 15, floor - 12, 30, 24)
        drawing.text("", left + (shard + 0.5) * step, floor + 5, str(shard))
    return places[0]


def tree_figure() -> str:
    drawing = Drawing(900, 350, "One tree of eight shards gives the same sum on one rank and on four ranks")
    x1, y = draw_tree(drawing, 20, 1)
    x2, _ = draw_tree(drawing, 512, 4)
    drawing.text("title", x1, 40, "1 rank, 8 shards")
    drawing.text("title", x2, 40, "4 ranks, 2 shards each")
    drawing.text("", (x1 + x2) / 2, y - 4, "same root,")
    drawing.text("", (x1 + x2) / 2, y + 14, "same bits")
    drawing.line("wire", 516, 326, 546, 326)
    drawing.text("left note", 554, 330, "sums between ranks continue the tree")
    drawing.box("leaf", 24, 316, 26, 20)
    drawing.text("left note", 58, 330, "gradient of one shard of the images")
    return drawing.svg()


LANES = ["loader", "forward", "backward", "bucket sums", "update"]


def step_figure() -> str:
    drawing = Drawing(900, 290, "A training step over time: loader, forward, backward, bucket sums, update")
    top, height, left = 20, 46, 130

    def row(lane: str) -> float:
        return top + LANES.index(lane) * height

    def block(name: str, lane: str, begin: float, end: float, words: str) -> None:
        drawing.box(name, left + begin, row(lane) + 6, end - begin - 3, height - 12)
        drawing.text("", left + (begin + end - 3) / 2, row(lane) + height / 2 + 5, words)

    for lane in LANES:
        drawing.text("left title", 16, row(lane) + height / 2 + 5, lane)
        drawing.line("node", 16, row(lane) + height, 884, row(lane) + height)
    for begin, end, number in ((0, 90, "n"), (90, 290, "n + 1"), (290, 490, "n + 2")):
        block("box", "loader", begin, end, f"batch {number}")
    drawing.arrow("link", left + 93, row("loader") + 30, left + 93, row("forward") + 5)
    block("leaf", "forward", 90, 250, "layers first to last")
    backward = [(250, 350, "last layers"), (350, 450, "middle"), (450, 550, "first layers")]
    for begin, end, words in backward:
        block("leaf", "backward", begin, end, words)
    drawing.arrow("link", left + 253, row("forward") + 30, left + 253, row("backward") + 5)
    for number, (_, end, _) in enumerate(backward, 1):
        block("exchange", "bucket sums", end, end + 90, f"bucket {number}")
        drawing.arrow("wire", left + end + 3, row("backward") + 38, left + end + 3, row("bucket sums") + 5)
    drawing.arrow("link", left + 643, row("bucket sums") + 38, left + 643, row("update") + 5)
    block("root", "update", 640, 740, "optimizer")
    end = top + len(LANES) * height
    drawing.text("left note", 16, end + 24, "Time runs to the right. A bucket starts when its last gradient is ready; "
                 "finish() waits for the last bucket.")  # fmt: skip
    return drawing.svg()


def rooms_figure() -> str:
    from draw_rooms import rooms_figure as draw  # which draws by this module

    return draw()


FIGURES = {"docs/tree.svg": tree_figure, "docs/step.svg": step_figure, "docs/rooms.svg": rooms_figure}


def outdated() -> dict[Path, str]:
    """The files that differ from this program's output, with the text that they should have."""
    texts = {ROOT / name: draw() for name, draw in FIGURES.items()}
    return {path: text for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text}


if __name__ == "__main__":
    for path, text in outdated().items():
        path.write_text(text, encoding="utf-8")
