# SPDX-License-Identifier: Apache-2.0
"""What is lost without a probe is said of each that the module sets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from etrace.capture.kmod.loading import probes

HOOKS = Path(__file__).parents[2] / "kmod/src/probe/hooks.c"
ALL = tuple(probes.LOST)


def test_the_table_names_what_the_module_probes_or_looks_up() -> None:
    source = HOOKS.read_text()
    (table,) = re.findall(r"kprobe_definitions\[\] = {\n(.*?)\n};", source, re.DOTALL)
    rows = dict(re.findall(r'\{ "(\w+)", \w+([^}]*) \}', table))
    looked_up = set(re.findall(r'missing\[n_missing\+\+\] = "(\w+)";', source))
    assert looked_up
    assert rows.keys() | looked_up == set(probes.LOST)
    always = {name for name, more in rows.items() if not more and "close_range" not in name}
    assert always == probes.ALWAYS


@pytest.mark.parametrize("name", ALL)
def test_one_missing_probe_says_what_is_lost(name: str) -> None:
    assert probes.told((name,)) == f"this kernel lacks {name}: {probes.LOST[name]}"
    assert not probes.are_off((name,))


def test_a_close_that_is_missing_is_no_rename() -> None:
    told = probes.told(("do_close_on_exec",))
    assert "Close" in told
    assert "rename" not in told


def test_all_missing_probes_are_switched_off() -> None:
    assert probes.are_off(ALL)
    assert probes.are_off(tuple(probes.ALWAYS))
    assert probes.told(ALL).startswith("kprobes of the kernel are switched off: names of renames")


def test_the_same_loss_is_said_once() -> None:
    names = ("__x64_sys_close_range", "__arm64_sys_close_range", "unheard_of")
    assert probes.lost(names) == (probes.CLOSED, "what unheard_of shows is lost")


def test_nothing_is_said_when_nothing_is_missing() -> None:
    assert probes.told(()) == ""
