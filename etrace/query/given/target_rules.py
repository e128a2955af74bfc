# SPDX-License-Identifier: Apache-2.0
r"""A target given by the user -> the file name and the rules for this file.

Options for one file stand in the name itself:
`[file=PATH,direct=true,exclude_cmd=GLOB,exclude=GLOB,negate_pattern=true,...]`. A key may be
repeated; a comma in a value is written `\,`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from libetrace.depend.rules import Rules

from etrace.errors import EtraceError

TRUE = frozenset(("true", "1", "yes", "on"))
FALSE = frozenset(("false", "0", "no", "off"))
FLAGS = {
    "direct": "is_direct",
    "ordered": "is_ordered",
    "pipes": "pipes",
    "use_pipes": "pipes",
    "with_pipes": "pipes",
    "wrap_deps": "is_wrapped",
    "wrap": "is_wrapped",
    "programs": "all_programs",
    "negate_pattern": "negate",
    "negate": "negate",
}
PATTERNS = {
    "exclude": "exclude_files",
    "exclude_file": "exclude_files",
    "exclude_files": "exclude_files",
    "exclude_pattern": "exclude_files",
    "exclude_patterns": "exclude_files",
    "exclude_cmd": "exclude_commands",
    "exclude_command": "exclude_commands",
    "exclude_commands": "exclude_commands",
}
FILES = frozenset(("file", "path"))
HINT = "write [file=PATH,direct=true,exclude_cmd=GLOB,exclude=GLOB,negate_pattern=true]"
PARTS = r"(?s)(?:[^,\\]|\\.)+"


def read_targets(names: Iterable[bytes], rules: Rules) -> Mapping[Rules, list[bytes]]:
    """Return names grouped by their rules; EtraceError for unknown options."""
    out: dict[Rules, list[bytes]] = {}
    for name in names:
        own, changed = read_target(name, rules)
        out.setdefault(changed, []).append(own)
    return out


def read_target(name: bytes, rules: Rules) -> tuple[bytes, Rules]:
    """Return the file name in a target, and the rules for it."""
    text = os.fsdecode(name)
    if not (text.startswith("[") and text.endswith("]") and "=" in text):
        return name, rules
    file: str | None = None
    for part in re.findall(PARTS, text[1:-1]):
        key, is_pair, value = part.partition("=")
        key, value = key.strip(), re.sub(r"\\(.)", r"\1", value)
        if not is_pair:
            raise EtraceError(f"{text}: {part!r} has no value", HINT)
        if key in FILES:
            file = value
        else:
            rules = _changed(rules, text, key, value)
    if not file:
        raise EtraceError(f"{text}: no file", HINT)
    return os.fsencode(file), rules


def _changed(rules: Rules, text: str, key: str, value: str) -> Rules:
    if key in FLAGS:
        return _replaced(rules, FLAGS[key], lambda _: _flag(text, key, value))
    if key in PATTERNS:
        return _replaced(rules, PATTERNS[key], lambda old: (*old, os.fsencode(value)))
    raise EtraceError(f"{text}: no option {key!r}", HINT)


def _replaced(rules: Rules, name: str, change: Callable[[Any], Any]) -> Rules:
    return rules._replace(**{name: change(getattr(rules, name))})


def _flag(text: str, key: str, value: str) -> bool:
    if value.lower() not in TRUE | FALSE:
        raise EtraceError(f"{text}: {key}={value} is neither true nor false", HINT)
    return value.lower() in TRUE
