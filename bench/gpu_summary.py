"""Summarizes the results of bench/gpu_suite.sh on one page: RESULTS/summary.md and RESULTS/summary.html.

usage: python3 bench/gpu_summary.py RESULTS

Each figure of gpu_figures.json stands beside its goal (bench/gpu_goals.json) and beside what lockstep plan predicts for
the card (plan.txt). A figure that is not there says which part did not bring it. Goals that were set for one card are
marked where another was measured.
"""

import html
import json
import re
import sys
from pathlib import Path

GOALS = Path(__file__).resolve().parent / "gpu_goals.json"
PARTS = (  # what brings a figure, by how its name begins
    ("against_cpu_", "step"), ("largest_batch", "memory"), ("nccl_", "nccl-{}"), ("norm_", "norms"),
    ("convnet_", "train"), ("jpeg_", "jpeg"), ("trace_", "trace"), ("images_per_s_input", "input"),
    ("over_torch_", "speed-{}"), ("images_per_s_", "speed-{}"),
)  # fmt: skip
STYLE = """body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 64em; padding: 0 1em;
color-scheme: light dark }
table { border-collapse: collapse; width: 100% }
td, th { padding: .2em .6em; text-align: left; border-bottom: 1px solid #8886 }
.kept { color: #2a8a3e } .missed { color: #c0392b; font-weight: bold } .open { opacity: .6 }"""


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def part_of(figure: str) -> str:
    start, part = next(pair for pair in PARTS if figure.startswith(pair[0]))
    rest = figure.removeprefix(start).replace("_", "-")
    return part.format(rest.split("-")[0] if start == "nccl_" else rest)


def predictions(plan: str) -> dict[str, float]:
    """Scheme -> images per second of one GPU; "8 ranks" -> efficiency there."""
    found = {}
    for line in plan.splitlines():
        if match := re.match(r"\s+(unfused|fused batch norm|stats in convolutions)((?:\s+[\d.]+){6})\s*$", line):
            found[match[1]] = float(match[2].split()[4])
        elif match := re.match(r"\s+(\d+ ranks?)\s.*efficiency\s+([\d.]+) %", line):
            found[match[1]] = float(match[2]) / 100
    return found


def text_of(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def verdict(goal: dict, value: float | None, state: str) -> str:
    if value is None:
        part = part_of(goal["figure"])
        became = f"{part} {'is ' if state == 'absent' else ''}{state}" if state else f"no {part}"
        return f"not measured: {became}"
    kept = value >= goal["at_least"] if "at_least" in goal else value <= goal["at_most"]
    return "kept" if kept else "missed"


def read_current(file: Path) -> dict:
    """The file, or {} if it is of another card or commit than the suite's last run."""
    found, suite = read(file), read(file.parent / "gpu_suite.json")
    return found if all(found.get(name) == suite.get(name) for name in ("commit", "gpu")) else {}


def rows_of(results: Path) -> list[dict[str, str]]:
    figures, parts = read_current(results / "gpu_figures.json").get("figures", {}), read(results / "gpu_suite.json")
    plan = results / "plan.txt"
    predicted = predictions(plan.read_text(encoding="utf-8")) if plan.exists() else {}
    gpu = parts.get("gpu", {}).get("name", "")
    rows = []
    for goal in read(GOALS)["goals"]:
        value = figures.get(goal["figure"])
        state = parts.get("parts", {}).get(part_of(goal["figure"]), {}).get("state", "")
        bound = f"≥ {goal['at_least']:,}" if "at_least" in goal else f"≤ {goal['at_most']:,}"
        card = goal.get("card", "")
        rows.append({
            "figure": goal["what"],
            "measured": text_of(value),
            "goal": bound + (f" ({card})" if card and card not in gpu else ""),
            "of the goal": verdict(goal, value, state),
            "predicted": text_of(predicted.get(goal.get("predicted", ""))),
            "goal from": goal["source"],
        })  # fmt: skip
    return rows


def parts_rows(results: Path) -> list[dict[str, str]]:
    parts = read(results / "gpu_suite.json").get("parts", {})
    return [{"part": name, "state": part["state"], "seconds": str(part["seconds"])} for name, part in parts.items()]


def peers_rows(results: Path) -> list[dict[str, str]]:
    rows = []
    for name, row in read_current(results / "steps_cuda.json").get("steps", {}).items():
        over = row.get("over_peer")
        ratio = f"{over['ratio']} ({over['min']}-{over['max']})" if over else row.get("peer_failed", "no PyTorch")
        speeds = {"images/s": row["images_per_s"], "PyTorch's": row.get("peer_images_per_s")}
        texts = {name: text_of(value) for name, value in speeds.items()}
        rows.append({"step": name} | texts | {"ratio (min-max)": ratio, "rounds": str(row["rounds"])})
    return rows


def markdown_table(rows: list[dict[str, str]]) -> list[str]:
    if not rows:
        return ["none yet"]
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    return lines + ["| " + " | ".join(text.replace("|", "\\|") for text in row.values()) + " |" for row in rows]


def html_table(rows: list[dict[str, str]]) -> list[str]:
    if not rows:
        return ["<p>none yet</p>"]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    lines = [f"<table><tr>{head}</tr>"]
    for row in rows:
        cells = []
        for name, text in row.items():
            kind = {"kept": "kept", "missed": "missed"}.get(text, "open" if text.startswith("not") else "")
            mark = f' class="{kind}"' if name == "of the goal" else ""
            cells.append(f"<td{mark}>{html.escape(text)}</td>")
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return [*lines, "</table>"]


def pages(results: Path) -> tuple[str, str]:
    """Markdown and HTML."""
    origin = read(results / "gpu_suite.json")
    gpu = ", ".join(value for value in origin.get("gpu", {}).values() if value)
    sources = "; ".join(f"{name}: {text}" for name, text in read(GOALS)["sources"].items())
    rows = rows_of(results)
    counts = [sum(row["of the goal"].startswith(word) for row in rows) for word in ("kept", "missed", "not")]
    facts = [
        f"{gpu}, {origin.get('date', '')}, commit {origin.get('commit', '')}.",
        f"Goals: {counts[0]} kept, {counts[1]} missed, {counts[2]} not measured. Predictions are lockstep plan's.",
        f"Goals from {sources}.",
    ]
    if "emulated" in gpu:
        facts.insert(0, "A rehearsal: it shows that the suite works, and its figures mean nothing.")
    tables = [("Figures", rows), ("Training steps beside PyTorch's", peers_rows(results))]
    tables.append(("Parts", parts_rows(results)))
    md = ["# Day one on a GPU", "", *facts]
    page = [f"<!doctype html><meta charset=utf-8><title>Day one on a GPU</title><style>{STYLE}</style>"]
    page += ["<h1>Day one on a GPU</h1>", *(f"<p>{html.escape(fact)}</p>" for fact in facts)]
    for title, table in tables:
        md += ["", f"## {title}", "", *markdown_table(table)]
        page += [f"<h2>{title}</h2>", *html_table(table)]
    return "\n".join(md) + "\n", "\n".join(page) + "\n"


def main() -> None:
    results = Path(sys.argv[1])
    markdown, page = pages(results)
    (results / "summary.md").write_text(markdown, encoding="utf-8")
    (results / "summary.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
