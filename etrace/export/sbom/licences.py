# SPDX-License-Identifier: Apache-2.0
"""Licence expressions for formats that know a list of names: others become a `LicenseRef-`.

`licences.txt` beside this file has the ids and exceptions of the SPDX licence list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from etrace.origin.licence import is_expression

LIST = Path(__file__).with_name("licences.txt")
REFERENCE = "LicenseRef-"
_NAME = re.compile(r"[A-Za-z0-9][\w.:+-]*")
OPERATORS = frozenset(("AND", "OR", "WITH"))


@cache
def listed() -> frozenset[str]:
    """Return the ids of the list, in lower case."""
    lines = LIST.read_text("ascii").splitlines()
    return frozenset(line.lower() for line in lines if not line.startswith("#"))


class Licences:
    """The expressions of one document, and the names in them that no list has."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def known(self, expression: str, text: str = "") -> str:
        """Return an expression in which every name is listed or a reference; empty if malformed.

        `text` is that of the one reference that an expression is.
        """
        if not is_expression(expression):
            return ""
        found = _NAME.sub(self._one, expression)
        if text and found in self._own:
            self._texts[found] = text
        return found

    def _one(self, match: re.Match[str]) -> str:
        name = match[0]
        if name.upper() in OPERATORS:
            return name.upper()
        if name.removesuffix("+").lower() in listed() or name.startswith(REFERENCE):
            if name.startswith(REFERENCE):
                self._own[name] = name
            return name
        reference = REFERENCE + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        self._own[reference] = name
        return reference

    @staticmethod
    def names(expression: str) -> list[str]:
        """Return the single licences of an expression, sorted; of `A WITH B` it is that."""
        parts = re.split(r"\s+(?:AND|OR)\s+|[()]", expression)
        return sorted({part.strip() for part in parts if part.strip()})

    def references(self, expression: str) -> list[str]:
        """Return the references in an expression, sorted."""
        return sorted({name for name in _NAME.findall(expression) if name in self._own})

    def extracted(self) -> Iterator[dict[str, str]]:
        """Yield what SPDX 2 wants to know of names that are not listed."""
        for reference, name in sorted(self._own.items()):
            usual = f"The file or package names the licence {name}."
            text = self._texts.get(reference, usual)
            yield {"licenseId": reference, "extractedText": text, "name": name}
