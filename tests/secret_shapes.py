# SPDX-License-Identifier: Apache-2.0
"""The table tests/data/secret_commands.txt -> commands with secrets made up for it."""

from __future__ import annotations

import random
import re
import shlex
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parent / "data/secret_commands.txt"
_MARK = re.compile(r"\{([ABDHLSP])(\d*)\}")
LETTERS = {
    "A": string.ascii_letters + string.digits, "B": string.ascii_uppercase + "234567",
    "D": string.digits, "H": "0123456789abcdef", "L": string.ascii_lowercase + string.digits,
}  # fmt: skip


class Shape(NamedTuple):
    """A command and what of it is secret."""

    template: str
    words: list[str]
    secrets: list[str]


def shapes(seed: int = 1) -> Iterator[Shape]:
    """Yield the shapes of the table, each with secrets of its own."""
    chance = random.Random(seed)
    for template in templates():
        secrets: list[str] = []

        def made(mark: re.Match[str], secrets: list[str] = secrets) -> str:
            if mark[1] == "S":
                text = "z" + _some(chance, "A", 14) + "7kQ"
            elif mark[1] == "P":
                text = "q7+" + _some(chance, "A", 12) + "%R_z."
            else:
                text = _some(chance, mark[1], int(mark[2]))
            if len(text) >= 8:
                secrets.append(text)
            return text

        yield Shape(template, shlex.split(_MARK.sub(made, template)), secrets)


def templates() -> Iterator[str]:
    """Yield the lines of the table; a quote that is open at the end of a line goes on."""
    whole = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not whole and (not line or line.startswith("#")):
            continue
        whole += line if not whole else f"\n{line}"
        try:
            shlex.split(whole)
        except ValueError:
            continue
        yield whole
        whole = ""
    if whole:
        raise ValueError(f"a quote is open: {whole}")


def _some(chance: random.Random, kind: str, length: int) -> str:
    return "".join(chance.choices(LETTERS[kind], k=length))
