"""The lives of tables of several layouts: a table of what upserts and services came to, and a picture."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

Lives = Mapping[str, Mapping[str, Sequence[float]]]
"""By peer, what there was of its table after each upsert (`life` of scripts/lsm.py)."""

LIFE = "life"
TITLES = {
    "written_mb": "written so far, MB",
    "space_mb": "files in the table, MB",
    "log_files": "log files of the file slice",
    "read_s": "read of three columns, processor seconds (mean of ten)",
}
_SMOOTHED = {"read_s": 10}


def head(lives: Lives) -> list[str]:
    """Return the first row of the table."""
    upserts = max(len(each["written_mb"]) for each in lives.values())
    return [f"{upserts} upserts with services", *lives]


def rows(lives: Lives) -> list[list[str]]:
    """Return the rows of the table."""
    tables = list(lives.values())
    return [
        ["written, MB", *(f"{each['written_mb'][-1]:,.0f}" for each in tables)],
        ["most space, MB", *(f"{max(each['space_mb']):,.0f}" for each in tables)],
        ["most log files", *(f"{max(each['log_files']):,.0f}" for each in tables)],
        ["upserts and services, processor seconds", *(f"{sum(each['upsert_s']):.2f}" for each in tables)],
        ["read of three columns, mean", *(f"{statistics.fmean(each['read_s']):.3f} cpu" for each in tables)],
        ["look-up, mean", *(f"{statistics.fmean(each['lookup_s']):.3f} cpu" for each in tables)],
    ]


def draw(lives: Lives, file: Path) -> None:
    """Draw the curves, one picture for each title."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "lives", "font.size": 8})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(8, 5), sharex=True, layout="constrained")
    for axis, (name, title) in zip(axes.flat, TITLES.items(), strict=True):
        for peer, life in lives.items():
            values = _means(life[name], _SMOOTHED.get(name, 1))
            every = len(life[name]) // len(values)
            axis.plot(range(every, len(life[name]) + 1, every), values, linewidth=0.9, label=peer)
        axis.set_title(title, loc="left")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0][0].legend(loc="upper left")
    for axis in axes[1]:
        axis.set_xlabel("upserts")
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def _means(values: Sequence[float], count: int) -> list[float]:
    """Return the means of every few values; of all of them if there are fewer."""
    ends = range(count, len(values) + 1, count)
    return [statistics.fmean(values[end - count : end]) for end in ends] or [statistics.fmean(values)]
