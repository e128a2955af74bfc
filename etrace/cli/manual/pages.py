# SPDX-License-Identifier: Apache-2.0
"""Declarations of the programs -> their man pages, committed as docs/man/NAME.SECTION.

`python -m etrace.cli.manual.pages` writes them, `--check` compares instead. Committed, because a
build has neither the templates' renderer nor, before it is over, anything to import. Escapes:
man(7), groff_char(7).
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from itertools import groupby
from pathlib import Path

from etrace import __version__
from etrace.cli.manual.declarations import Program, etrace_cat, etraced, programs, tracer
from etrace.errors import EtraceError
from etrace.render import render, write_or_check

TEMPLATE = Path(__file__).with_name("templates") / "man.1.j2"
WIDTH = 70  # of lines of the source, before escapes
SEE_ALSO = {
    "cas": 1, "etrace": 1, "etrace_cat": 1, "etrace_parser": 1, "etraced": 8, "unix-tracer": 1,
}  # fmt: skip


def escape(text: str) -> str:
    """Return text that troff prints as it is: dashes stay ASCII, no line begins a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    text = text.replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


def filled(text: str) -> str:
    """Return running text: each sentence begins a line, as troff wants it."""
    sentences = re.split(r"(?<=[a-z)\]]\.) (?=[A-Z])", " ".join(text.split()))
    return "\n".join(escape(line) for s in sentences for line in textwrap.wrap(s, WIDTH))


def prose(text: str) -> str:
    """Return running text in which indented lines, examples, stay as they are."""
    out = []
    for is_example, lines in groupby(text.splitlines(), lambda line: line.startswith("  ")):
        part = "\n".join(lines)
        example = escape(textwrap.dedent(part))
        out.append(f".RS\n.nf\n{example}\n.fi\n.RE" if is_example else filled(part))
    return "\n".join(filter(None, out))


def page(program: Program) -> str:
    """Return the man page of a program."""
    others = {name: section for name, section in SEE_ALSO.items() if name != program.name}
    values = {
        "program": program, "version": __version__, "others": others,
        "escape": escape, "filled": filled, "prose": prose,
    }  # fmt: skip
    return render(TEMPLATE, values)


def pages(top: Path) -> dict[Path, str]:
    """Return the pages of all programs: path -> text; EtraceError without a built `etrace_cat`."""
    command = shutil.which("etrace_cat", path=str(Path(sys.executable).parent))
    if command is None:
        raise EtraceError("etrace_cat is not built", "make build")
    declared = (*programs(), tracer(), etraced(), etrace_cat(Path(command)))
    return {top / "docs" / "man" / f"{p.name}.{p.section}": page(p) for p in declared}


def main(argv: list[str] | None = None) -> int:
    """Command line of `python -m etrace.cli.manual.pages`."""
    return write_or_check("etrace.cli.manual.pages", __doc__, pages, argv)


if __name__ == "__main__":
    sys.exit(main())
