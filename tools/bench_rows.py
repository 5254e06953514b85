"""Rows of the tables of accuracy over seeds, of time to an accuracy, and of a step by kernel."""

from bench_text import places_text, ratio_text


def seed_rows(result: dict) -> list[str]:
    correct = result["correct"]
    spread = f", standard deviation {result['deviation'] / 100:.2f}" if len(correct) > 1 else ""
    return [
        f"| seed | {' | '.join(correct)} | mean |",
        "|---" * (len(correct) + 2) + "|",
        f"| accuracy, % | {' | '.join(f'{count / 100:.2f}' for count in correct.values())} "
        f"| {result['mean'] / 100:.2f}{spread} |",
        "",
        f"{places_text([result])}; in f32, by `{result['script']}`.",
    ]


def accuracy_cells(part: dict) -> str:
    low, mean, high = (f"{100 * part[f'accuracy_{which}']:.2f}" for which in ("min", "mean", "max"))
    return f"{part['seconds']:.1f} s, {mean} % ({low}-{high})"


ISAS = {"": "", "_avx2": ", AVX2"}  # by the ends of parts' names


def measured_parts(result: dict, name: str) -> list[tuple[dict, str]]:
    """The results of this name, each with its dtype and instruction set."""
    return [
        (result[name + isa][dtype], dtype + named)
        for isa, named in ISAS.items()
        for dtype in ("f32", "bf16")
        if dtype in result.get(name + isa, {})
    ]


def of_side(side: dict) -> str:
    return accuracy_cells(side) if "seconds" in side else f"{side['images_per_s']:,} images/s"


def time_to_accuracy_rows(result: dict) -> list[str]:
    """Rows for the parts that have been measured."""
    cores = next(iter(result.values()))["cores"]
    rows = [f"| {cores} cores | Lockstep | PyTorch | ratio (min-max) |", "|---|---|---|---|"]
    titles = {"mnist": "MNIST to 99.0 %", "cifar94": "CIFAR-10 to 94 %", "speed": "airbench94"}
    for name, title in titles.items():
        for part, named in measured_parts(result, name):
            cells = [of_side(part[side]) for side in ("lockstep", "torch")]
            rows.append(f"| {title}, {named} | {' | '.join(cells)} | {ratio_text(part['torch']['ratio'])} |")
            if "lockstep_2_ranks" in part:
                rows.append(f"| the same on 2 ranks of 1 thread | {of_side(part['lockstep_2_ranks'])} | | |")
    for isa, named in ISAS.items():
        if f"scaling{isa}" in result:
            part = result[f"scaling{isa}"]
            cells = f"{of_side(part['two_ranks'])} | {part['one_rank']['images_per_s']:,} by 1 rank"
            rows.append(
                f"| airbench94{named}: 2 ranks of 1 thread over 1 | {cells} | {ratio_text(part['one_rank']['ratio'])} |"
            )
    script = next(iter(result.values()))["script"]
    return [
        *rows,
        "",
        f"{places_text(list(result.values()))}; PyTorch with channels_last and tcmalloc, the same recipe. Seconds are "
        "of the whole process; medians over rounds in turn, a seed each, with accuracies as mean and range, by "
        f"`{script}`.",
    ]


KERNEL_COLUMNS = {  # what the timeline calls them
    "convolutions, products": ("conv2d", "depthwise_conv2d", "linear"),
    "norms": ("batch_norm",),
    "images": ("wait for images", "prepare images"),
    "optimizer": ("optimizer",),
}


def step_rows(result: dict) -> list[str]:
    rows = [
        f"| a step | ms | {' | '.join(KERNEL_COLUMNS)} | all else | products: reached, limit | norms: reached, copy |",
        "|" + "---|" * (len(KERNEL_COLUMNS) + 5),
    ]
    for part in result.values():
        times, whole = part["ms"], part["ms"]["step"]
        shares = [sum(times.get(kernel, 0) for kernel in kernels) / whole for kernels in KERNEL_COLUMNS.values()]
        cells = [f"{share:.0%}" for share in (*shares, max(0.0, 1 - sum(shares)))]
        for limit, unit in (("product", "GFLOP/s"), ("copy", "GB/s")):
            reached, most = part["reached"][limit], part["limit"][limit]
            cells.append(f"{reached:.0f} of {most:.0f} {unit}: {reached / most:.0%}")
        rows.append(f"| {part['title']} | {whole:.1f} | {' | '.join(cells)} |")
    parts = list(result.values())
    return [
        *rows,
        "",
        f"{places_text(parts)}; means over steps, medians of {parts[0]['rounds']} rounds, by `{parts[0]['script']}`.",
    ]
