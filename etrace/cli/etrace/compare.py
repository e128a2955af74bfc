# SPDX-License-Identifier: Apache-2.0
"""`etrace compare A B`: two builds side by side, and limits for CI."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from libetrace.image.file import Image

from etrace.cli.etrace.views import write_page
from etrace.cli.opening import prepared
from etrace.cli.options.common import add_examples, add_format, add_quiet, add_two_builds
from etrace.cli.show.output import put
from etrace.errors import UsageError
from etrace.query.rows.records import Records
from etrace.report.comparison import page
from etrace.report.comparison.build import NS
from etrace.report.comparison.compare import Comparison, Cost, Figure, compare
from etrace.report.comparison.limits import Verdict, judge, read_limit
from etrace.report.comparison.tables import Section, sections, verdict

EPILOG = """\
limits: FIGURE>NUMBER, also with <, >= and <=. FIGURE is wall, cpu, critical-path, commands, failed,
size or dependencies. A NUMBER with + or - is a change, in percent (wall>+10%) or with a unit
(wall>+2s, size>+20kB); one without a sign is compared with build B (failed>0). A change within the
noise of --runs does not exceed a limit.

exit status: 0 no limit is exceeded; 1 a limit is exceeded; 2 wrong usage, damaged input or failure.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace compare`."""
    parser.epilog = EPILOG
    add_two_builds(parser)
    add_format(parser, "text", "markdown", "json")
    parser.add_argument(
        "--fail-if", metavar="LIMIT", type=str, action="append", default=[],
        help="end with status 1 if a figure exceeds a limit, for example 'wall>+10%%'; may be "
        "repeated",
    )  # fmt: skip
    for name, which in (("--runs", "A"), ("--runs-after", "B")):
        parser.add_argument(
            name, metavar="DIR", type=Path, nargs="+", default=[],
            help=f"more runs of build {which}: they show how times differ without a change",
        )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path,
        help="also write a page for a browser",
    )  # fmt: skip
    add_quiet(parser)
    add_examples(
        parser,
        "etrace compare ../yesterday .",
        "etrace compare before after --runs again once-more --fail-if 'wall>+10%'",
    )


def run(args: argparse.Namespace) -> int:
    """Run `etrace compare`; 1 when a limit is exceeded."""
    limits = [read_limit(text) for text in args.fail_if]
    before, after = (_opened(args, place) for place in (args.a, args.b))
    runs = [
        _runs(args, first, more) for first, more in ((before, args.runs), (after, args.runs_after))
    ]
    found = compare(before, after, (runs[0], runs[1]))
    verdicts = [judge(found, limit) for limit in limits]
    names = [
        f"{place}{f' (mean of {n} runs)' if n > 1 else ''}"
        for place, n in zip((args.a, args.b), found.n_runs, strict=True)
    ]
    if args.output is not None:
        write_page(
            page.render(names, found, verdicts), args.output, before.path, after.path,
            what="comparison", is_quiet=args.quiet,
        )  # fmt: skip
    if args.format == "json":
        put(json.dumps(_record(before, after, found, verdicts), indent=1) + "\n")
    else:
        lines = _markdown if args.format == "markdown" else _text
        put("".join(f"{line}\n" for line in lines(names, found, verdicts)))
    return int(any(each.is_exceeded for each in verdicts))


def _runs(args: argparse.Namespace, first: Image, places: Sequence[Path]) -> list[Image]:
    """Open more runs of a build; UsageError for one that is there already, it has no noise."""
    found = [first]
    for place in places:
        image = _opened(args, place)
        if any(image.path.samefile(other.path) for other in found):
            raise UsageError(f"{place} is a run that is compared already", "name other runs")
        found.append(image)
    return found[1:]


def _opened(args: argparse.Namespace, place: Path) -> Image:
    return prepared(place, is_quiet=args.quiet)


# ---- text ----


def _plain(text: str) -> str:
    """Return text on one line, without control characters."""
    text = text.encode(errors="surrogateescape").decode(errors="replace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _text(names: Sequence[str], found: Comparison, verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield from (f"{letter}  {_plain(name)}" for letter, name in zip("AB", names, strict=True))
    for section in sections(found):
        yield ""
        yield from _text_table(section)
    if verdicts:
        yield ""
        yield from map(verdict, verdicts)


def _text_table(section: Section) -> Iterator[str]:
    if section.title:
        yield section.title
    rows = [[_plain(cell) for cell in row] for row in section.rows]
    if len(section.head) == 1:
        yield from (f"  {row[0]}" for row in rows)
    else:
        widths = [max(map(len, column)) for column in zip(section.head, *rows, strict=True)]
        for row in (section.head, *rows):
            first, *others = (
                cell.rjust(width) if at else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            yield "  ".join(("  " + first, *others)).rstrip()
    yield from (f"  {line}" for line in (*map(_plain, section.quoted), *_after(section)))


def _after(section: Section) -> Iterator[str]:
    if section.n_more:
        yield f"and {section.n_more:,} more (--format json lists all)"
    if section.note:
        yield section.note


# ---- Markdown ----


def _markdown(
    names: Sequence[str], found: Comparison, verdicts: Sequence[Verdict]
) -> Iterator[str]:
    yield f"### Build {_code(names[1])} compared with {_code(names[0])}"
    if verdicts:
        yield ""
    for each in verdicts:
        yield f"- {'**exceeded**' if each.is_exceeded else 'kept'}: {_code(verdict(each))}"
    for section in sections(found):
        yield ""
        if section.title:
            yield f"**{section.title}**"
            yield ""
        yield _row(section.head)
        yield _row(["---", *["--:"] * (len(section.head) - 1)])
        for first, *others in section.rows:
            yield _row([first if not section.title else _code(first), *others])
        if section.quoted:
            lines = [_plain(line) for line in section.quoted]
            fence = _fence("".join(lines), least=3)
            yield from ("", fence, *lines, fence)
        for line in _after(section):
            yield ""
            yield line


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _fence(text: str, least: int = 1) -> str:
    """Return more backticks than the text has in a row."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def _code(text: str) -> str:
    """Return text that Markdown shows unchanged, also in a table."""
    text = _plain(text)
    fence = _fence(text)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


# ---- JSON ----


def _record(
    before: Image, after: Image, found: Comparison, verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    records = Records(before), Records(after)
    return {
        "figures": {name: _figure(each) for name, each in found.figures.items()},
        "n_runs": list(found.n_runs),
        "times": found.times,
        "failed_newly": [
            {**_command(records[1], each.row), "name": each.name, "status": each.status,
             "made_the_build_fail": each.is_cause, "last_lines": list(each.written)}
            for each in found.failed
        ],
        "built_newly": list(found.built),
        "no_longer_built": list(found.no_longer_built),
        "modules": [
            {"path": each.name, "size": _figure(each.size),
             "dependencies": _figure(each.dependencies), "headers": _figure(each.headers)}
            for each in found.modules
        ],
        "programs": [_cost(each) for each in found.programs],
        "targets": [_cost(each) for each in found.targets],
        "commands": [_cost(each) | _command(records[1], each.row) for each in found.costs],
        "ran_newly": [_cost(each) | _command(records[1], each.row) for each in found.new],
        "ran_no_longer": [_cost(each) | _command(records[0], each.row) for each in found.gone],
        "headers": [
            {"path": os.fsdecode(each.path), "before_bytes": each.before, "after_bytes": each.after,
             "change_ns": _number(NS, each.ns), "noise_ns": _number(NS, each.noise)}
            for each in found.headers
        ],
        "limits": [
            {"limit": each.limit.text, "is_exceeded": each.is_exceeded, "is_noise": each.is_noise}
            for each in verdicts
        ],
    }  # fmt: skip


def _figure(figure: Figure) -> dict[str, Any]:
    numbers = {"before": figure.before, "after": figure.after, "noise": figure.noise}
    end = f"_{figure.unit}" if figure.unit else ""
    return {f"{name}{end}": _number(figure.unit, n) for name, n in numbers.items()}


def _number(unit: str, n: float | None) -> str | int | None:
    """Return a whole number; of nanoseconds as text, as in all JSON of etrace."""
    if n is None:
        return None
    return str(round(n)) if unit == NS else round(n)


def _cost(cost: Cost) -> dict[str, Any]:
    return {"name": cost.name, "n_before": cost.n[0], "n_after": cost.n[1], **_figure(cost.time)}


def _command(records: Records, row: int) -> dict[str, Any]:
    upid, index = records.key(row)
    return {"pid": upid, "idx": index, "cwd": records.directory(row), "command": records.argv(row)}
