"""Writes the measured tables between markers in the documents, from bench/results/*.json.

usage: python3 tools/bench_table.py

<!-- measured: NAME --> ... <!-- /measured --> in README.md, CONTRIBUTING.md or docs/*.md holds the table of
bench/results/NAME.json; README's short table, `summary`, is a selection from several of them.
"""

import json
import re
import textwrap
from pathlib import Path

import bench_long
from bench_rows import seed_rows, step_rows, time_to_accuracy_rows
from bench_text import percent_text, places_text, ratio_text, size_text, time_text

ROOT = Path(__file__).resolve().parent.parent
PLACE = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- /measured -->)", re.DOTALL)


def convnet_rows(result: dict) -> list[str]:
    scaling, torch, shards = result["two_ranks_over_one"], result["over_pytorch"], result["eight_shards_over_two"]
    one, two, bf16 = result["first_step_s_one_rank"], result["first_step_s_two_ranks"], result["bf16"]
    return [
        "| ConvNet on MNIST, batch 32 | Lockstep | PyTorch | ratio (min-max) |",
        "|---|---|---|---|",
        f"| images/s, {result['cores']} cores | {torch['a_images_per_s']:,} | {torch['b_images_per_s']:,} "
        f"| {ratio_text(torch['speed'])} |",
        f"| process start to first step done | {one:.2f} s | {result['peer_first_step_s']:.2f} s "
        f"| {result['peer_first_step_s'] / one:.0f} |",
        f"| images/s in bf16: `--opt-level O2 --dtype bf16` and autocast | {bf16['a_images_per_s']:,} "
        f"| {bf16['b_images_per_s']:,} | {ratio_text(bf16['speed'])} |",
        f"| 2 ranks of 1 thread over 1 rank of 1 thread | {ratio_text(scaling['speed'])}, first step after "
        f"{two:.2f} s | | |",
        f"| 4 shards per rank over 1 (same bits on 8 ranks, not 2), 2 ranks | {ratio_text(shards['speed'])} | | |",
        "",
        f"{places_text([result, bf16])}; peer: {result['peer']} with tcmalloc; medians of {torch['speed']['rounds']} "
        f"alternating rounds ({bf16['speed']['rounds']} in bf16), PyTorch's first step of "
        f"{result.get('peer_first_step_runs', 1)}, by `{result['script']}`.",
    ]


PEER_NAMES = {"open_mpi": "Open MPI", "gloo": "gloo"}


def allreduce_rows(result: dict) -> list[str]:
    peers = list(result["peers"])
    head = ["all-reduce in place, f32", "ranks", "Lockstep", *(PEER_NAMES[peer] for peer in peers)]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in result["results"]:
        ours = f"{time_text(row['lockstep_us'])}, {row['bytes'] / row['lockstep_us'] / 1000:.1f} GB/s"
        cells = [size_text(row["bytes"]), str(row["ranks"]), ours]
        for peer in peers:
            ratio = row[f"{peer}_ratio"]
            cells.append(
                f"{time_text(row[f'{peer}_us'])}: {ratio['ratio']:.1f}x ({ratio['min']:.1f}-{ratio['max']:.1f})"
            )
        rows.append(f"| {' | '.join(cells)} |")
    versions = "".join(f", {version}" for version in result["peers"].values())
    return [
        *rows,
        "",
        f"{result['cpu']}, {result['cores']} cores, {result['date']}, commit {result['commit']}{versions}; "
        "GB/s = size over time, x = time over Lockstep's; medians of "
        f"{result['rounds']} rounds in turn by `{result['script']}`, sums checked in the same run.",
    ]


def resnet_rows(result: dict) -> list[str]:
    names = ("r18", "r50", "r18_avx2", "r50_avx2", "r18_bf16", "r50_bf16", "ddp", "ddp_avx2")
    networks = [result[name] for name in names if name in result]
    rows = [
        f"| training step, {networks[0]['cores']} cores | Lockstep | PyTorch, best | ratio (min-max) "
        "| PyTorch, as in tutorials | peak memory, Lockstep and best |",
        "|---|---|---|---|---|---|",
    ]
    for part in networks:
        best, stock = part["best"], part.get("stock")
        ours, theirs = best["lockstep"], best["torch"]
        cells = [
            f"{part['title']}, batch {part['batch']}",
            f"{ours['images_per_s']:.1f} images/s",
            f"{theirs['images_per_s']:.1f}",
            ratio_text(best["speed"]),
            f"{stock['torch']['images_per_s']:.1f}: {ratio_text(stock['speed'])}" if stock else "",
            f"{ours['peak_rss_mib']:,} and {theirs['peak_rss_mib']:,} MiB: {best['memory_ratio']:.2f}",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    stock_parts = [part["stock"] for part in networks if "stock" in part]
    rounds, stock_rounds = (
        " or ".join(sorted({str(each["speed"]["rounds"]) for each in parts}))
        for parts in ([part["best"] for part in networks], stock_parts)
    )
    if "scaling" in result:
        part = result["scaling"]
        rows.append(f"| {part['title']}, batch {part['batch']} per rank | {ratio_text(part['speed'])} | | | | |")
    return [
        *rows,
        "",
        f"{places_text(list(result.values()))}; best = channels_last and tcmalloc, in bf16 autocast, PyTorch "
        f"{networks[0]['torch']}; medians of {rounds} rounds in turn, as in tutorials of {stock_rounds}, by "
        f"`{networks[0]['script']}`.",
    ]


def loader_rows(result: dict) -> list[str]:
    peers = {"pil": "ImageFolder and Pillow's transforms", "v2": "decode_image and transforms.v2"}
    rows = [
        f"| photos to 224x224 crops, {result['workers']} workers each | images/s | Lockstep's over it (min-max) |",
        "|---|---|---|",
        f"| Lockstep | {result['lockstep_images_per_s']:,} | |",
    ]
    for peer, title in peers.items():
        rows.append(
            f"| torchvision: {title} | {result[f'{peer}_images_per_s']:,} | {ratio_text(result[f'over_{peer}'])} |"
        )
    return [
        *rows,
        "",
        f"{places_text([result])}; files read and decoded exactly each time, medians of "
        f"{result['over_v2']['rounds']} rounds in turn by `{result['script']}`.",
    ]


def learning_rows(result: dict) -> list[str]:
    curves = {name: result[name] for name in ("one_rank", "two_ranks") if name in result}
    titles = {"one_rank": "1 rank", "two_ranks": "2 ranks, `--sync-bn`"}
    first = next(iter(curves.values()))
    epochs = range(1, len(first["loss"]) + 1)
    rows = ["| ResNet-20 on CIFAR-10, epoch | " + " | ".join(map(str, epochs)) + " |", "|---" * (len(epochs) + 1) + "|"]
    for figure, title, digits in (("loss", "mean training loss", 3), ("correct", "right of 10,000 test images", 0)):
        bands = [f"{low:.{digits}f}-{high:.{digits}f}" for low, high in first[f"{figure}_band"]]
        rows.append(f"| {title}: PyTorch's band | {' | '.join(bands)} |")
        for name, curve in curves.items():
            cells = [f"{value:.{digits}f}" for value in curve[figure]]
            rows.append(f"| {titles[name]} | {' | '.join(cells)} |")
    speed = result["speed"]
    return [
        *rows,
        "",
        f"{places_text(list(result.values()))}; the band is PyTorch's over three seeds, widened by a third on both "
        f"sides. Speed: {speed['lockstep_images_per_s']:.0f} images/s, PyTorch {speed['torch']} with channels_last and "
        f"tcmalloc {speed['torch_images_per_s']:.0f}: {ratio_text(speed['speed'])}, "
        f"{speed['speed']['rounds']} rounds of {speed['steps']} steps in turn. By `{speed['script']}`.",
    ]


def observing_rows(result: dict) -> list[str]:
    rows = [
        "| images/s of a run on 2 threads | with log lines, event files and report, over without "
        "| with a trace, over without | before the first and after the last step |",
        "|---|---|---|---|",
    ]
    for part in result.values():
        rows.append(
            f"| {part['title']}: {part['images_per_s']:,} images/s | {percent_text(part['observed_over_bare'])} "
            f"| {percent_text(part['traced_over_observed'])} | {part['other_s']:.2f} s |"
        )
    one = next(iter(result.values()))
    return [
        *rows,
        "",
        f"{places_text(list(result.values()))}; medians of {one['observed_over_bare']['rounds']} rounds in turn, with "
        f"the smallest and the largest, by `{one['script']}`.",
    ]


def save_rows(result: dict) -> list[str]:
    rows = [
        "| a save | holds the steps up, median (largest) | until its files are there | a step, and one meanwhile |",
        "|---|---|---|---|",
    ]
    for part in result.values():
        blocked = part["blocked_ms"]
        rows.append(
            f"| {part['title']}: {part['megabytes']} MB | {blocked['median']:.0f} ms ({blocked['max']:.0f} ms) "
            f"| {part['end_waited_ms']} ms | {part['step_ms']} ms, {part['step_beside_ms']} ms |"
        )
    one = next(iter(result.values()))
    return [
        *rows,
        "",
        f"{places_text(list(result.values()))}; {one['saves']} saves by `{one['script']}`, while others took up "
        f"to {one['others_percent_max']} % of a core.",
    ]


def promise_rows(result: dict) -> list[str]:
    timed = []
    for row in result["rows"].values():
        digits = 0 if row["unit"] == "steps" else 2
        median, largest, bound = f"{row['median']:.{digits}f}", f"{row['largest']:.{digits}f}", f"{row['bound']:g}"
        times = [f"{value} {row['unit']}" for value in (median, largest, bound)]
        timed.append([row["promise"], row["what"], str(row["n"]), *times])
    promises = timed + bench_long.counted_promises(ROOT / "tests" / "long")
    promises.sort(key=lambda cells: (not cells[0], cells[0]))  # rows without a promise come last
    counted = ", ".join(f"[{name}](../tests/long/{name})" for name in bench_long.FILES)
    return [
        "| promise | what was measured | times | median | largest | bound |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(cells)} |" for cells in promises),
        "",
        f"{places_text([result])}; by `{result['script']}`. Counts are from {counted}.",
    ]


BUILD_PARTS = {  # what is timed -> its words and the most that it may take, in seconds
    "train": ("`scripts/train.sh`, packages there, no ccache, until \"Accuracy is\"", 240),
    "train_cuda": ("the same with CUDA for one architecture", 360),
    "ci_empty": ("`.ci/run`, empty ccache", 35 * 60),
    "ci_warm": ("`.ci/run`, warm ccache, a changed line in `nn/`", 18 * 60),
    "change_nn": ("a changed line in `nn/layers.cpp` until its unit tests have run", 25),
    "change_kernels": ("a changed line in `kernels/norm/batch_norm.h` until the kernels' unit tests have run", 120),
}


def seconds_text(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.1f} min"


def build_rows(result: dict) -> list[str]:
    rows = ["| what | takes | at most | peak memory |", "|---|---|---|---|"]
    measured = [name for name in BUILD_PARTS if name in result]
    for name in measured:
        (title, budget), part = BUILD_PARTS[name], result[name]
        memory = f"{part['peak_mib']:,} MiB" if "peak_mib" in part else ""
        rows.append(f"| {title} | {seconds_text(part['seconds'])} | {seconds_text(budget)} | {memory} |")
    return [*rows, "", f"{places_text([result[name] for name in measured])}; by `bench/build_time.sh`."]


def speeds_row(title: str, ours: str, other: str, ratio: dict) -> str:
    return f"| {title} | {ours} | {other} | {ratio_text(ratio)} |"


def summary_rows(convnet: dict, resnet: dict, allreduce: dict, accuracy: dict) -> list[str]:
    torch = convnet["over_pytorch"]
    rows = [
        f"| {convnet['cores']} CPU cores | Lockstep | compared with | ratio (min-max) |",
        "|---|---|---|---|",
        speeds_row(
            "ConvNet on MNIST, batch 32",
            f"{torch['a_images_per_s']:,} images/s",
            f"PyTorch: {torch['b_images_per_s']:,}",
            torch["speed"],
        ),
    ]
    for title, part, digits in (
        ("MNIST to 99.0 %, whole process, bf16", accuracy["mnist"]["bf16"], 1),
        ("CIFAR-10 to 94 %, whole process, f32, AVX2", accuracy["cifar94_avx2"]["f32"], 0),
    ):
        seconds = [f"{part[side]['seconds']:,.{digits}f} s" for side in ("lockstep", "torch")]
        rows.append(speeds_row(title, seconds[0], f"PyTorch: {seconds[1]}", part["torch"]["ratio"]))
    for part in (resnet[name] for name in ("r18", "r18_avx2", "ddp_avx2", "r50", "r50_bf16")):
        best = part["best"]
        rows.append(
            speeds_row(
                f"{part['title']}, batch {part['batch']}",
                f"{best['lockstep']['images_per_s']:.1f} images/s",
                f"PyTorch: {best['torch']['images_per_s']:.1f}",
                best["speed"],
            )
        )
    scaling = resnet["scaling"]
    rows.append(
        speeds_row(
            "ResNet-18, CIFAR stem: 2 ranks of 1 thread",
            f"{scaling['two_ranks']['images_per_s']:.1f} images/s",
            f"1 rank of 1 thread: {scaling['one_rank']['images_per_s']:.1f}",
            scaling["speed"],
        )
    )
    row = next(row for row in allreduce["results"] if (row["ranks"], row["bytes"]) == (2, 25 << 20))
    rows.append(
        speeds_row(
            "all-reduce of 25 MiB, 2 ranks",
            time_text(row["lockstep_us"]),
            f"Open MPI: {time_text(row['open_mpi_us'])}",
            row["open_mpi_ratio"],
        )
    )
    return [
        *rows,
        "",
        f"{convnet['cpu']}, medians of alternating rounds; PyTorch with channels_last and tcmalloc, its faster "
        "setting. Dates, commits and scripts are in [docs/performance.md](docs/performance.md).",
    ]


ROWS = {
    "summary": summary_rows,
    "build_time": build_rows,
    "convnet_cpu": convnet_rows,
    "allreduce_cpu": allreduce_rows,
    "resnet_cpu": resnet_rows,
    "cifar_resnet20": learning_rows,
    "cifar94_seeds": seed_rows,
    "loader_cpu": loader_rows,
    "observing_cpu": observing_rows,
    "save_blocking": save_rows,
    "promises": promise_rows,
    "time_to_accuracy": time_to_accuracy_rows,
    "step_by_kernel": step_rows,
}

# A table of another name has the result of that name.
RESULTS_OF = {"summary": ("convnet_cpu", "resnet_cpu", "allreduce_cpu", "time_to_accuracy")}


def wrapped(line: str) -> str:
    if line.startswith("|"):
        return line
    return textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False)


def with_tables(text: str) -> str:
    def table(match: re.Match) -> str:
        results = [
            json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text(encoding="utf-8"))
            for name in RESULTS_OF.get(match[2], (match[2],))
        ]
        return match[1] + "\n".join(map(wrapped, ROWS[match[2]](*results))) + "\n" + match[3]

    return PLACE.sub(table, text)


def documents() -> dict[Path, str]:
    """The documents that may hold a table, with their text."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    return {path: path.read_text(encoding="utf-8") for path in paths}


def outdated() -> dict[Path, str]:
    """The documents whose tables differ from the results, with the text that they should have."""
    held = documents()
    expected = {path: with_tables(text) for path, text in held.items()}
    return {path: text for path, text in expected.items() if text != held[path]}


def homeless() -> list[str]:
    """The tables that no document has markers for."""
    placed = {match[2] for text in documents().values() for match in PLACE.finditer(text)}
    return [name for name in ROWS if name not in placed]


if __name__ == "__main__":
    for path, text in outdated().items():
        path.write_text(text, encoding="utf-8")
