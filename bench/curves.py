"""The curves of the soak: a table of them, a picture, and whether they stay flat."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Curves = Mapping[str, Sequence[float]]

PARTS = 4
GROWTH_MAX = 1.25
"""What the last quarter of a soak may have of files and instants for each one that the second had."""
OF_PROCESSOR = {"batch_s": "batch_cpu_s", "read_s": "read_cpu_s"}
TITLES = {
    "files": "files in the table",
    "instants": "instants on the active timeline",
    "batch_s": "seconds of a batch",
    "read_s": "seconds of a snapshot read",
}
_SHOWN = 0.9
"""Share of the seconds that fit into the picture: one batch that was held up would flatten the others."""


def rows(curves: Curves) -> list[list[str]]:
    """Return the rows of the soak's table: what each quarter of the batches came to."""
    return [
        ["files, at most", *(f"{max(part):,.0f}" for part in _parts(curves["files"]))],
        ["instants, at most", *(f"{max(part):,.0f}" for part in _parts(curves["instants"]))],
        ["batch, median seconds", *_seconds(curves["batch_s"], statistics.median)],
        ["batch, mean processor seconds", *_seconds(curves["batch_cpu_s"], statistics.fmean)],
        ["snapshot read, median seconds", *_seconds(curves["read_s"], statistics.median)],
        ["snapshot read, mean processor seconds", *_seconds(curves["read_cpu_s"], statistics.fmean)],
    ]


def head(curves: Curves) -> list[str]:
    """Return the first row: which batches a column is about."""
    numbers = _parts(range(1, len(curves["files"]) + 1))
    return ["Batches", *(f"{part[0]:,}-{part[-1]:,}" for part in numbers)]


def grown(curves: Curves) -> list[str]:
    """Return which counts grew from the second quarter to the last; in the first they still rise."""
    found = []
    for name in ("files", "instants"):
        parts = [max(part) for part in _parts(curves[name])]
        if parts[-1] > GROWTH_MAX * parts[1]:
            found.append(
                f"{TITLES[name]}: {parts[1]:,.0f} in the second quarter, {parts[-1]:,.0f} in the last"
            )
    return found


def draw(curves: Curves, file: Path) -> None:
    """Draw the four curves, one above the other."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "soak", "font.size": 8, "path.simplify_threshold": 0.5}
    )
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(TITLES), figsize=(8, 8), sharex=True, layout="constrained")
    batches = len(curves["files"])
    for axis, (name, title) in zip(axes, TITLES.items(), strict=True):
        values = curves[name]
        every = batches // len(values)
        numbers = range(every, batches + 1, every)
        if name in OF_PROCESSOR:
            axis.plot(numbers, values, linewidth=0.4, color="lightgray", label="by the clock")
            axis.plot(numbers, curves[OF_PROCESSOR[name]], linewidth=0.6, label="of the processor")
            axis.legend(loc="upper right")
            axis.set_ylim(top=sorted(values)[int(_SHOWN * len(values))])
        else:
            axis.plot(numbers, values, linewidth=0.6)
        axis.set_title(title, loc="left")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("batches")
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def _parts(values: Sequence[float]) -> list[Sequence[float]]:
    """Divide values into parts of one length, the last one with what is left over; fewer for few values."""
    each = max(1, len(values) // PARTS)
    starts = list(range(0, min(len(values), each * PARTS), each))
    ends = [*starts[1:], len(values)]
    return [values[start:end] for start, end in zip(starts, ends, strict=True)]


def _seconds(values: Sequence[float], measure: Callable[[Sequence[float]], float]) -> list[str]:
    return [f"{measure(part):.3f}" for part in _parts(values)]
