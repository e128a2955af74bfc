# SPDX-License-Identifier: Apache-2.0
"""The timelines of two builds -> their part of the page: drawings as SVG, without a script.

Places are percentages of the width, so that text and lines keep their size in any window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count as numbers
from xml.etree.ElementTree import Element, SubElement

from etrace.figures import NS_PER_SECOND, count, seconds
from etrace.report.comparison.build import Build
from etrace.report.comparison.compare import Comparison
from etrace.report.comparison.tables import change
from etrace.report.comparison.timelines import (
    LEAST,
    LEAST_RATIO,
    OTHERS,
    Box,
    Mark,
    Timeline,
    Timelines,
    timelines,
)
from etrace.report.pack import shown

#: dark text is readable on all of them, in light and in dark pages; the last two are those of the
#: other programs and of commands that failed
COLOURS = (
    "#8ecae6", "#ffb703", "#95d5b2", "#f4a6c1", "#cdb4f6", "#e9c46a", "#a8dadc", "#f3a683",
    "#b8bec8", "#ff6b5e",
)  # fmt: skip
FAILED = OTHERS + 1
TITLES = {Mark.SLOWER: "slower", Mark.NEW: "ran newly", Mark.GONE: "ran no longer"}
#: px; a mark is a line below a command
AXIS, LANE, HEIGHT, MARK = 20, (5, 17), 260, (2, 4)
#: from this part of the time scale on a command has room for its name
NAMED = 0.06
N_TICKS = 5
#: beyond this part of the time scale there is no room for the label of a tick
MAX_LABELLED = 0.9
STYLE = """
.timeline { display: block; width: 100%; font-size: 11px; } .timeline .ran { fill: var(--raised); }
.timeline line { stroke: var(--line); } .timeline .axis { fill: var(--soft); }
.timeline .name { fill: #16181c; pointer-events: none; }
.legend svg { vertical-align: -1px; margin-right: .35rem; }
.slower { fill: #b3261e; } .new { fill: #0b57d0; } .gone { fill: #5b616b; }
#timelines h3 { font-size: .9rem; margin: .8rem 0 .3rem; overflow-wrap: anywhere; }
""" + "".join(f".c{number} {{ fill: {colour}; }}\n" for number, colour in enumerate(COLOURS))


def add_timelines(body: Element, names: Sequence[str], found: Comparison) -> None:
    """Add the section `timelines`."""
    drawn = timelines(found)
    part = SubElement(body, "section", id="timelines")
    SubElement(part, "h2").text = "Timelines"
    _add_legend(part, drawn)
    for build, side, name in zip(found.builds, drawn.sides, names, strict=True):
        SubElement(part, "h3").text = f"{name}: {seconds(side.elapsed_ns)}"
        _add_drawing(SubElement(part, "div", {"class": "canvas"}), build, side, drawn, name)
        if side.left_out:
            left_out = f"{count(side.left_out, 'command')} in further lanes are not drawn"
            SubElement(part, "p", {"class": "remark"}).text = left_out
    note = "commands that started no other"
    if drawn.slower:
        least = f"at least {LEAST_RATIO * 100:.0f} % and {seconds(round(drawn.span_ns * LEAST))}"
        note += f"; slower: by {least}{', beyond the noise' if found.is_noise_known else ''}"
    SubElement(part, "p", {"class": "remark"}).text = note


def _add_legend(part: Element, drawn: Timelines) -> None:
    boxes = [box for side in drawn.sides for box in side.boxes]
    marks = {box.mark for box in boxes}
    looks: list[tuple[int, Mark | None, str]] = [
        (number, None, _shown(name)) for number, name in enumerate(drawn.programs)
    ]
    if drawn.has_others:
        looks.append((OTHERS, None, "others"))
    if any(box.is_failed for box in boxes):
        looks.append((FAILED, None, "failed"))
    looks += [(OTHERS, mark, TITLES[mark]) for mark in Mark if mark in marks]
    legend = SubElement(part, "ul", {"class": "legend", "aria-label": "colours"})
    for colour, mark, name in looks:
        swatch = SubElement(SubElement(legend, "li"), "svg", {
            "width": "12", "height": "12", "aria-hidden": "true"
        })  # fmt: skip
        _add_rect(swatch, f"c{colour}", ("0", "12"), 0, 12)
        if mark is not None:
            _add_rect(swatch, mark, ("0", "12"), 12 - MARK[1], MARK[1])
        swatch.tail = name


def _add_rect(parent: Element, look: str, place: tuple[str, str], y: int, height: int) -> Element:
    """Add a box; `place` is where it begins and how wide it is."""
    x, width = place
    return SubElement(parent, "rect", {
        "class": look, "x": x, "width": width, "y": str(y), "height": str(height)
    })  # fmt: skip


def _add_drawing(frame: Element, build: Build, side: Timeline, drawn: Timelines, name: str) -> None:
    least, most = LANE
    lane = max(least, min(most, HEIGHT // max(1, *(each.n_lanes for each in drawn.sides))))
    height = AXIS + side.n_lanes * lane + 3
    spoken = f"timeline of {name}: the tables below say the same"
    svg = SubElement(frame, "svg", {
        "class": "timeline", "height": str(height), "role": "img", "aria-label": spoken,
    })  # fmt: skip
    _add_rect(svg, "ran", ("0", _percent(side.elapsed_ns, drawn)), 0, height)
    for time_ns in _ticks(drawn.span_ns):
        x = _percent(time_ns, drawn)
        SubElement(svg, "line", x1=x, x2=x, y1="0", y2=str(height))
        if time_ns < MAX_LABELLED * drawn.span_ns:
            label = SubElement(svg, "text", {"class": "axis", "x": x, "y": "13", "dx": "3"})
            label.text = f"{time_ns / NS_PER_SECOND:,.6f}".rstrip("0").rstrip(".") + " s"
    for box in side.boxes:
        _add_box(svg, build, box, drawn, lane)


def _add_box(svg: Element, build: Build, box: Box, drawn: Timelines, lane: int) -> None:
    long_ns = max(box.end_ns - box.start_ns, round(drawn.span_ns * LEAST))
    place = _percent(box.start_ns, drawn), _percent(long_ns, drawn)
    y, height = AXIS + box.lane * lane, lane - 1
    frame = SubElement(svg, "g")
    SubElement(frame, "title").text = _title(build, box, drawn)
    _add_rect(frame, f"c{FAILED if box.is_failed else box.colour}", place, y, height)
    if box.mark is not None:
        thick = max(MARK[0], min(MARK[1], lane // 4))
        _add_rect(frame, box.mark, place, y + height - thick, thick)
    if box.n == 1 and long_ns >= NAMED * drawn.span_ns and lane == LANE[1]:
        clip = SubElement(frame, "svg", {"x": place[0], "y": str(y), "width": place[1]})
        label = SubElement(clip, "text", {"class": "name", "x": "4", "y": "10"})
        label.text = _shown(build.side.label(box.row))


def _title(build: Build, box: Box, drawn: Timelines) -> str:
    time = f"{seconds(box.start_ns)} to {seconds(box.end_ns)}"
    if box.n > 1:
        return f"{count(box.n, 'short command')}, {time}"
    words = [_shown(build.name(box.row)), time]
    if box.mark is Mark.SLOWER:
        words.append(f"slower: {change(drawn.slower[box.row].time)}")
    elif box.mark is not None:
        words.append(TITLES[box.mark])
    return ", ".join(words)


def _shown(text: str) -> str:
    return shown(text.encode(errors="surrogateescape"))


def _percent(time_ns: float, drawn: Timelines) -> str:
    return f"{time_ns / drawn.span_ns:.2%}"


def _ticks(span_ns: int) -> Iterator[int]:
    """Yield round times."""
    step = next(
        step
        for power in numbers()
        for step in (10**power, 2 * 10**power, 5 * 10**power)
        if step * N_TICKS >= span_ns
    )
    yield from range(0, span_ns, step)
