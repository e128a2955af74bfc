# SPDX-License-Identifier: Apache-2.0
"""Draw the terminal of docs/demo.md as an animated SVG, docs/pictures/demo.svg.

Run it as `python demo/picture.py` after a change of docs/demo.md. Each line appears in turn; a
viewer without CSS animations shows all lines at once.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

TOP = Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "demo.md"
PICTURE = TOP / "docs" / "pictures" / "demo.svg"
#: commands of the page that are shown, and which lines of their output
SHOWN = {
    "etrace run": slice(-2, -1),
    "cas pp": slice(1, None),
    "cas deps": slice(0, 1),
    "cas why": slice(0, None),
}
COLUMNS, LINE_PX, MARGIN_PX, SECONDS_A_LINE = 100, 18, 16, 0.5
STYLE = """\
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #d0d7de; white-space: pre }
.command { fill: #7ee787 }
text { animation: appear 0.2s both }
@keyframes appear { from { opacity: 0 } }
@media (prefers-reduced-motion) { text { animation: none } }
"""


def transcript(page: str) -> dict[str, list[str]]:
    """Return the output of each command on the page."""
    outputs: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in page.split("```\n")[1].splitlines():
        if line.startswith("$ "):
            lines = outputs.setdefault(line.removeprefix("$ "), [])
        elif line and not line.startswith("== "):
            lines.append(line)
    return outputs


def shown(outputs: dict[str, list[str]]) -> list[str]:
    """Return the lines of the picture."""
    found: list[str] = []
    for command, output in outputs.items():
        for start, part in SHOWN.items():
            if command.startswith(start):
                found += [f"$ {command}", *output[part]]
    return found


def _cut(line: str) -> str:
    return line if len(line) <= COLUMNS else line[: COLUMNS - 3] + "..."


def _text(number: int, line: str) -> str:
    kind = ' class="command"' if line.startswith("$ ") else ""
    y = MARGIN_PX + (number + 1) * LINE_PX - 5
    delay = f"animation-delay: {number * SECONDS_A_LINE:g}s"
    return f'<text{kind} x="{MARGIN_PX}" y="{y}" style="{delay}">{escape(_cut(line))}</text>'


def svg(lines: list[str]) -> str:
    """Return the picture."""
    width, height = COLUMNS * 8 + 2 * MARGIN_PX, len(lines) * LINE_PX + 2 * MARGIN_PX
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
            "<!-- drawn by demo/picture.py -->",
            f"<style>\n{STYLE}</style>",
            f'<rect width="{width}" height="{height}" rx="6" fill="#0d1117"/>',
            *(_text(number, line) for number, line in enumerate(lines)),
            "</svg>\n",
        )
    )


if __name__ == "__main__":
    PICTURE.write_text(svg(shown(transcript(PAGE.read_text()))))
