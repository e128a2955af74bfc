# SPDX-License-Identifier: Apache-2.0
"""A real build under ptrace and preload: the same, but for what is documented."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import sources
from backends import BACKENDS, PRELOAD
from built_content import content

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

#: what libc and the dynamic linker open for themselves (docs/capture-preload.md)
OF_LIBC = re.compile(rb"/etc/(ld\.so\.cache|locale\.alias)|/usr/(lib|share)/locale/.*|.*/gconv/.*")


def test_lua_has_the_same_programs_and_opens_but_those_of_libc(tmp_path: Path) -> None:
    tree = sources.fetch("lua5.4", tmp_path.resolve())
    by_ptrace, seen = content(BACKENDS[0], tree)
    by_preload, told = content(PRELOAD, tree)
    assert by_ptrace == by_preload
    assert len(list(by_ptrace.elements())) > 100
    assert {key: n for key, n in (seen - told).items() if not OF_LIBC.fullmatch(key[2])} == {}
    assert told - seen == Counter()
