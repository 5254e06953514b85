"""Formats cells of the measured tables: times, sizes, ratios, and where a result is from."""


def time_text(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{microseconds:.3g} µs"
    return f"{microseconds / 1000:.3g} ms" if microseconds < 1e6 else f"{microseconds / 1e6:.3g} s"


def size_text(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def ratio_text(ratio: dict) -> str:
    return f"{ratio['ratio']:.2f} ({ratio['min']:.2f}-{ratio['max']:.2f})"


def percent_text(ratio: dict) -> str:
    return f"{ratio['ratio']:.1%} ({ratio['min']:.1%} to {ratio['max']:.1%})"


def places_text(parts: list[dict]) -> str:
    """Machine and date of parts that may have been measured on different days."""
    def origin(part: dict) -> str:
        cores = "1 core" if part["cores"] == 1 else f"{part['cores']} cores"
        return f"{part['cpu']}, {cores}, {part['date']}, commit {part['commit']}"

    origins = {origin(part) for part in parts}
    return "; ".join(sorted(origins))
