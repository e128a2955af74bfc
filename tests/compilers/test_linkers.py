# SPDX-License-Identifier: Apache-2.0
"""The option tables of linkers against what the linkers themselves say in --help."""

from __future__ import annotations

import re
import subprocess

import pytest
from backends import need_tool

from etrace.compilers import tools

#: `-x NAME`, `--long NAME`, and LLVM's `--long <name>`; explanations have no words in capitals
WITH_ARGUMENT = re.compile(r"(?:^|[ ,])(--?[A-Za-z][\w-]*) (?:[A-Z]{2,}\b|<[a-z:]+>)", re.MULTILINE)
#: it runs a command, which is not part of a link
NOT_A_LINK = {"--run"}
#: `--unique[=PATTERN]` and `--build-id STYLE` in mold's text take it joined only
JOINED_ONLY = {"--unique"}
LINKERS = {"ld.bfd": "binutils", "ld.gold": "binutils-gold", "ld.lld": "lld", "mold": "mold"}


@pytest.mark.parametrize("name", LINKERS)
def test_every_option_with_an_argument_is_known_to_take_it(name: str) -> None:
    path = need_tool(name, LINKERS[name])
    text = subprocess.run([path, "--help"], check=True, capture_output=True, text=True).stdout
    told = set(WITH_ARGUMENT.findall(text)) - NOT_A_LINK - JOINED_ONLY
    assert len(told) > 20
    tool = tools.load().identify(path.encode(), name.encode())
    assert tool is not None
    unknown = {
        option for option in told if tool.options.parse([option.encode(), b"-o"])[0].value != b"-o"
    }
    assert unknown == set()
