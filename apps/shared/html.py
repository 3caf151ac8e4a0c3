"""Reports as self-contained HTML files: style, tables, warnings, and Matplotlib figures as SVG."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

STYLE = """
body { font: 14px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #222222; }
body { margin: 0; background: #f2f2f2; }
section { max-width: 1060px; margin: 24px auto; padding: 28px 36px; background: white; box-shadow: 0 1px 4px #0003; }
h1 { font-size: 24px; margin: 0 0 2px; }
h2 { font-size: 16px; margin: 22px 0 6px; }
p.lead { color: #555555; margin: 0 0 14px; }
table { border-collapse: collapse; margin: 4px 0; }
th, td { padding: 3px 18px 3px 0; text-align: left; border-bottom: 1px solid #e6e6e6; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
td.name { white-space: nowrap; }
span.hash { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 11px; overflow-wrap: anywhere; }
ul.warnings { background: #fdf1e7; border-left: 4px solid #D55E00; margin: 10px 0; padding: 8px 8px 8px 28px; }
img { width: 100%; height: auto; margin-top: 10px; }
div.columns { display: flex; flex-wrap: wrap; gap: 0 48px; }
@media print {
  body { background: white; font-size: 10px; }
  section { box-shadow: none; margin: 0; padding: 0; break-after: page; }
  section:last-child { break-after: auto; }
  th, td { padding: 1px 14px 1px 0; }
  h2 { font-size: 12px; margin: 8px 0 3px; }
  span.hash { font-size: 7px; }
  img { width: 74%; margin: 4px 13% 0; }
}
@page { size: A4; margin: 12mm; }
"""
"""Style for the screen and for printing on A4."""


def document(title: str, sections: Sequence[str], style: str = "", language: str = "en") -> str:
    """Return the HTML document.

    Parameters
    ----------
    title : str
        Title of the window.
    sections : sequence of str
        HTML of the sections; each is a page when printed.
    style : str
        CSS added to the common style.
    language : str
        Language of the text.
    """
    body = "\n".join(sections)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def picture(svg: str, words: str) -> str:
    """Return an image element with the figure; `words` is its alternative text."""
    image = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(words)}" src="data:image/svg+xml;base64,{image}">'


def warnings(words: Sequence[str]) -> str:
    """Return a highlighted list of warnings, or an empty string without warnings."""
    if not words:
        return ""
    items = "".join(f"<li>{escape(warning)}</li>" for warning in words)
    return f'<ul class="warnings">{items}</ul>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 0) -> str:
    """Return a table: names in the first column, text in the last `words` columns, numbers in the others."""

    def kind(column: int, count: int) -> str:
        if column == 0:
            return ' class="name"'
        return "" if column >= count - words else ' class="number"'

    first = "".join(
        f"<th{kind(column, len(head)) if column else ''}>{escape(cell)}</th>" for column, cell in enumerate(head)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind(column, len(row))}>{escape(cell)}</td>" for column, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table>{f'<tr>{first}</tr>' if head else ''}{body}</table>"


if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of the given size [inch]."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, facecolor="white", layout="constrained")


def svg(figure: Figure) -> str:
    """Return a figure as SVG. The output is reproducible."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "haptics"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
