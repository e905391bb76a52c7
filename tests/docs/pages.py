"""The Markdown pages of the project."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for folder in (".", "docs", "demo", "bench", "requirements", "tests", ".github")
    for path in sorted((ROOT / folder).glob("*.md" if folder == "." else "**/*.md"))
]
