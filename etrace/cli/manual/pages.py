# SPDX-License-Identifier: Apache-2.0
"""Declarations of the programs -> their man pages: one a program, and one for each of its commands.

Without jinja2: build-aux/manual.py renders them in the middle of a build, where only Python is
sure to be there. Escapes: man(7), groff_char(7).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from etrace import __version__
from etrace.cli.manual.declarations import (
    Command,
    Option,
    Program,
    etrace_cat,
    etraced,
    programs,
    tracer,
)  # fmt: skip

WIDTH = 70  # of lines of the source, before escapes
#: (program, section) that every page of a program refers to
PROGRAMS = (
    ("cas", 1), ("etrace", 1), ("etrace_cat", 1), ("etrace_parser", 1), ("etraced", 8),
    ("unix-tracer", 1),
)  # fmt: skip
CHAINED = "What one query answers is what the next one in the command line is about."


def escape(text: str) -> str:
    """Return text that troff prints unchanged: dashes stay ASCII, no line begins a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    text = text.replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


def filled(text: str) -> str:
    """Return running text: each sentence begins a line, as troff wants it."""
    sentences = re.split(r"(?<=[a-z)\]]\.) (?=[A-Z])", " ".join(text.split()))
    return "\n".join(escape(line) for s in sentences for line in textwrap.wrap(s, WIDTH))


def prose(text: str) -> str:
    """Return running text in which indented lines, examples, stay unchanged."""
    out = []
    for is_example, lines in groupby(text.splitlines(), lambda line: line.startswith("  ")):
        part = "\n".join(lines)
        example = escape(textwrap.dedent(part))
        out.append(f".RS\n.nf\n{example}\n.fi\n.RE" if is_example else filled(part))
    return "\n".join(filter(None, out))


def sentence(text: str) -> str:
    """Return a summary as a sentence."""
    return filled(f"{text[:1].upper()}{text[1:]}.")


def option(declared: Option) -> str:
    """Return the entry of an option or an argument."""
    value = f"\\fI{escape(declared.value)}\\fR" if declared.value else ""
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in declared.names)
    text = filled(declared.help) or "\\&"
    return f".TP\n{' '.join(filter(None, (names, value)))}\n{text}"


def options(all_of_them: Iterable[Option]) -> Iterator[str]:
    """Yield the entries of options, those of a group below its title."""
    ordered = sorted(all_of_them, key=lambda each: each.group)
    for group, members in groupby(ordered, lambda each: each.group):
        if group:
            yield f".PP\n{filled(group[:1].upper() + group[1:])}:"
        yield from map(option, members)


def commands(title: str, listed: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a section that names the pages of commands, with their summaries."""
    yield f".SH {title}"
    for name, summary in listed:
        yield f".TP\n.BR {escape(name)} (1)\n{sentence(summary)}"


def head(name: str, section: int, summary: str, usages: Iterable[str]) -> Iterator[str]:
    """Yield what every page begins with; of a usage, the first words are the command."""
    # REUSE-IgnoreStart: of the page, not of this file
    yield '.\\" SPDX-License-Identifier: Apache-2.0'
    # REUSE-IgnoreEnd
    yield f'.TH {name.upper()} {section} "" "etrace {__version__}" "etrace manual"'
    yield f".SH NAME\n{escape(name)} \\- {escape(summary)}\n.SH SYNOPSIS"
    yield "\n.br\n".join(f"\\fB{escape(c)}\\fR {escape(rest)}" for c, rest in map(_split, usages))


def _split(usage: str) -> tuple[str, str]:
    """Return the command of a usage and what follows: it ends where options or values begin."""
    words = usage.split()
    n = next((i for i, word in enumerate(words) if not re.fullmatch("[a-z_-]+", word)), len(words))
    return " ".join(words[:n]), " ".join(words[n:])


def foot(status: str, others: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Yield what every page ends with."""
    if status:
        yield f".SH EXIT STATUS\n{filled(status)}"
    yield ".SH SEE ALSO"
    yield ",\n".join(f".BR {escape(name)} ({section})" for name, section in others)


def program_page(program: Program) -> str:
    """Return the page of a program; it names those of its commands."""
    usages = [f"{program.name} {usage}" for usage in program.usage]
    parts = list(head(program.name, program.section, program.summary, usages))
    body = program.body
    if body.epilog:
        parts.append(f".SH DESCRIPTION\n{prose(body.epilog)}")
    parts.append(".SH OPTIONS")
    parts += map(option, body.arguments)
    parts += options(body.options)
    shown = [c for c in program.commands if not c.parent]
    if queries := [(page_name(program, c), c.summary) for c in shown if c.is_query]:
        section = commands("QUERIES", queries)
        parts += [next(section), filled(CHAINED), *section]
    if rest := [(page_name(program, c), c.summary) for c in shown if not c.is_query]:
        parts += commands("COMMANDS", rest)
    others = [other for other in PROGRAMS if other[0] != program.name]
    return _joined([*parts, *foot(program.exit_status, others)])


def _joined(parts: Iterable[str]) -> str:
    """Return a page of its parts; a paragraph at the start of a section needs no request."""
    return re.sub(r"(?m)^(\.SH .*\n)\.PP\n", r"\1", "\n".join(parts)) + "\n"


def page_name(program: Program, command: Command) -> str:
    """Return the name of a command's page."""
    return f"{program.name}-{command.name}"


def command_page(program: Program, command: Command) -> str:
    """Return the page of one command of a program."""
    name = page_name(program, command)
    parts = [*head(name, 1, command.summary, [command.usage]), ".SH DESCRIPTION"]
    parts.append(sentence(command.summary))
    if command.aliases:
        names = " or ".join(f"`{program.name} {alias}`" for alias in command.aliases)
        parts.append(filled(f"The same as {names}."))
    if command.is_query:
        parts.append(filled(CHAINED))
    if command.epilog:
        parts.append(f".PP\n{prose(command.epilog)}")
    own = [each for each in command.options if each not in program.body.options]
    entries = [*map(option, command.arguments), *options(o for o in own if o.names[0] != "-h")]
    if entries or command.is_query:
        parts.append(".SH OPTIONS")
        parts += entries
    if command.is_query:
        parts.append(f".PP\n{filled('Every query also has the options of cas(1).')}")
    children = [c for c in program.commands if c.parent == command.name]
    if children:
        parts += commands("COMMANDS", [(page_name(program, c), c.summary) for c in children])
    says_status = "exit status" in command.epilog.lower()
    others = [(program.name, 1)]
    if command.parent:
        others.append((f"{program.name}-{command.parent}", 1))
    status = "" if says_status else program.exit_status
    return _joined([*parts, *foot(status, others)])


def pages(collector: Path) -> dict[str, str]:
    """Return all pages, named as in a manual: man1/NAME.1 -> text."""
    declared = (*programs(), tracer(), etraced(), etrace_cat(collector))
    found = {f"man{p.section}/{p.name}.{p.section}": program_page(p) for p in declared}
    for program in declared:
        for command in program.commands:
            found[f"man1/{page_name(program, command)}.1"] = command_page(program, command)
    return found
