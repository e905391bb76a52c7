"""Render a report about a table as one HTML page without scripts: a plug-in.

Charts are SVG text: bars, with a title that a browser shows for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from drawstring.model.result import size_text
from drawstring.services.table_report import CommitFacts, SliceFacts, TableReport

_WIDTH: Final = 920
_HEIGHT: Final = 150
_LEFT: Final = 70
_BOTTOM: Final = 22


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart.

    Attributes:
        value: its height.
        label: below the bar; empty for none.
        title: what a browser shows when the pointer is on it.
        kind: class of its colour.
    """

    value: float
    label: str
    title: str
    kind: str = "write"


def bars(name: str, values: Sequence[Bar], text: Callable[[float], str]) -> str:
    """Return a bar chart.

    Args:
        name: what it shows, for those who cannot see it.
        values: the bars, from left to right.
        text: returns a height as text, for the axis.
    """
    if not values:
        return '<p class="none">nothing yet</p>'
    top = max(each.value for each in values) or 1
    wide = (_WIDTH - _LEFT) / len(values)
    gap = min(3.0, wide / 5)
    drawn = "".join(_bar(each, _LEFT + number * wide, wide, gap, top) for number, each in enumerate(values))
    axis = (
        f'<text x="{_LEFT - 6}" y="12" class="axis">{escape(text(top))}</text>'
        f'<text x="{_LEFT - 6}" y="{_HEIGHT}" class="axis">0</text>'
        f'<line x1="{_LEFT}" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}"/>'
    )
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT + _BOTTOM}"'
    return f'<svg role="img" aria-label="{escape(name)}" {size}>{axis}{drawn}</svg>'


def _bar(bar: Bar, x: float, wide: float, gap: float, top: float) -> str:
    high = max(bar.value / top * (_HEIGHT - 4), 1.0 if bar.value else 0.0)
    label = (
        f'<text x="{x + wide / 2:.1f}" y="{_HEIGHT + 15}" class="label">{escape(bar.label)}</text>'
        if bar.label
        else ""
    )
    return (
        f'<rect class="{bar.kind}" x="{x + gap / 2:.1f}" y="{_HEIGHT - high:.1f}"'
        f' width="{wide - gap:.1f}" height="{high:.1f}"><title>{escape(bar.title)}</title></rect>{label}'
    )


_SHOWN: Final = 100
"""Commits in a chart and partitions in a list."""

_SIZES: Final = (1 << 20, 8 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20, 1 << 30)
_LOGS: Final = (0, 1, 2, 3, 5, 10, 20)
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 980px; margin: 2em auto; color: #222 }
h1 { font-size: 1.6em; margin-bottom: 0 } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25em .8em .25em 0 }
th { border-bottom: 1px solid #999; font-weight: 600 } td { border-bottom: 1px solid #ddd }
svg { width: 100%; height: auto } line { stroke: #999 } text { font-size: 12px; fill: #555 }
rect.write { fill: #2b6cb0 } rect.service { fill: #b7791f } rect.due { fill: #c53030 }
.axis { text-anchor: end } .label { text-anchor: middle }
.due td:first-child { font-weight: 600; color: #c53030 } .none { color: #777 }
.key span { margin-right: 1.5em }
"""


def page(report: TableReport, *, top: str = "", refresh_seconds: int | None = None) -> str:
    """Return the HTML page of a report.

    Args:
        report: the facts.
        top: HTML above it.
        refresh_seconds: see `document`.
    """
    body = "\n".join(
        (
            f"{top}<h1>{escape(report.name)}</h1><p>{escape(report.uri)}</p>",
            _facts(report),
            "<h2>Services</h2>",
            _due(report),
            "<h2>Timeline: rows changed by each commit</h2>",
            '<p class="key"><span>blue: writes</span><span>brown: table services, by rows written</span></p>',
            bars("rows changed by each commit", [_rows(each) for each in report.commits[-_SHOWN:]], _count),
            "<h2>Timeline: seconds of each commit</h2>",
            bars("seconds of each commit", [_seconds(each) for each in report.commits[-_SHOWN:]], _decimal),
            "<h2>File groups by size of the base file</h2>",
            bars("file groups by size", _by_size(report), _count),
            "<h2>File groups by number of log files</h2>",
            bars("file groups by log files", _by_logs(report.slices), _count),
            "<h2>Partitions</h2>",
            _partition_rows(report),
        )
    )
    title = f"{report.name}: report of {moment(report.made_at)}"
    return document(title, body, refresh_seconds=refresh_seconds)


def document(title: str, body: str, *, refresh_seconds: int | None = None) -> str:
    """Return a whole HTML page.

    Args:
        title: its title, as text.
        body: its HTML.
        refresh_seconds: after how many seconds a browser loads it again; None for never.
    """
    refresh = "" if refresh_seconds is None else f'<meta http-equiv="refresh" content="{refresh_seconds}">'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{refresh}'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _facts(report: TableReport) -> str:
    size = sum(each.base_bytes + each.log_bytes for each in report.slices)
    logs = sum(each.logs for each in report.slices)
    rows = (
        ("type, version", f"{report.table_type}, {report.version}"),
        ("record key", ", ".join(report.record_key) or "none"),
        ("partitioned by", ", ".join(report.partition_by) or "nothing"),
        ("size", f"{size_text(size)} in {len(report.slices)} file groups, {logs} log files"),
        ("partitions", f"{len(report.partitions)}"),
        ("commits in the active timeline", f"{len(report.commits)}"),
        ("bytes written for each byte of a write", _decimal(report.write_amplification)),
        ("rows written for each row changed", _decimal(report.rows_rewritten)),
        ("bytes read for each byte of base files", _decimal(report.read_amplification)),
        ("report of", moment(report.made_at)),
    )
    return _grid((), rows)


def _due(report: TableReport) -> str:
    rows = "".join(
        f'<tr class="{"due" if each.is_due else "idle"}"><td>{escape(each.service)}</td>'
        f"<td>{'due' if each.is_due else 'not due'}</td><td>{escape(each.why)}</td></tr>"
        for each in report.due
    )
    return f"<table><tr><th>service</th><th></th><th>why</th></tr>{rows}</table>"


def _partition_rows(report: TableReport) -> str:
    shown = report.partitions[:_SHOWN]
    rows = (
        (
            each.path or "(not partitioned)",
            size_text(each.size_bytes),
            f"{each.file_groups}",
            f"{each.small_files}",
            moment(each.last_write),
            _decimal(each.age_days),
        )
        for each in shown
    )
    left = len(report.partitions) - len(shown)
    more = f'<p class="none">and {left} smaller ones</p>' if left else ""
    small = f"small files (below {size_text(report.small_file_bytes)})"
    head = ("partition", "size", "file groups", small, "last write", "days since")
    return _grid(head, rows) + more


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "<tr>" + "".join(f"<th>{escape(each)}</th>" for each in head) + "</tr>" if head else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table>{top}{body}</table>"


def _rows(commit: CommitFacts) -> Bar:
    changed = commit.inserts + commit.updates + commit.deletes
    value = commit.rows_written if commit.is_service else changed
    return Bar(value, "", _commit_title(commit), _kind(commit))


def _seconds(commit: CommitFacts) -> Bar:
    return Bar(commit.seconds or 0.0, "", _commit_title(commit), _kind(commit))


def _kind(commit: CommitFacts) -> str:
    return "service" if commit.is_service else "write"


def _commit_title(commit: CommitFacts) -> str:
    seconds = "" if commit.seconds is None else f", {commit.seconds:.1f} s"
    size = size_text(commit.bytes_written)
    return (
        f"{commit.operation} {moment(commit.requested)}: {commit.inserts} inserted, {commit.updates}"
        f" updated, {commit.deletes} deleted; {commit.rows_written} rows and {size} written in"
        f" {commit.files} files{seconds}"
    )


def _by_size(report: TableReport) -> list[Bar]:
    bounds = [0, *_SIZES]
    found = []
    for number, low in enumerate(bounds):
        high = bounds[number + 1] if number + 1 < len(bounds) else None
        count = sum(
            low <= each.base_bytes and (high is None or each.base_bytes < high) for each in report.slices
        )
        label = f"from {size_text(low)}" if high is None else f"below {size_text(high)}"
        is_small = high is not None and high <= report.small_file_bytes
        found.append(Bar(count, label, f"{count} file groups {label}", "due" if is_small else "write"))
    return found


def _by_logs(slices: Sequence[SliceFacts]) -> list[Bar]:
    found = []
    for number, low in enumerate(_LOGS):
        after = _LOGS[number + 1] if number + 1 < len(_LOGS) else None
        count = sum(low <= each.logs and (after is None or each.logs < after) for each in slices)
        last = None if after is None else after - 1
        label = f"{low}" if last == low else f"{low} or more" if last is None else f"{low} to {last}"
        found.append(Bar(count, label, f"{count} file groups with {label} log files"))
    return found


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _decimal(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.2f}"


def moment(instant: str) -> str:
    """Return an instant time as a date and a time of day; other texts unchanged."""
    if len(instant) < 14 or not instant.isdigit():
        return instant
    day = f"{instant[:4]}-{instant[4:6]}-{instant[6:8]}"
    return f"{day} {instant[8:10]}:{instant[10:12]}:{instant[12:14]}"
