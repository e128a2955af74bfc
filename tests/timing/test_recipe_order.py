# SPDX-License-Identifier: Apache-2.0
"""Real makes and ninjas that sleep: which sleep waits for which, by the rules alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from traced_builds import trace

from etrace.cli.main import cas
from etrace.nfsdb.store import open_database
from etrace.query.rows.records import Records
from etrace.rules import ninja_rules
from etrace.rules.graph import Graph
from etrace.rules.rule import Rules
from etrace.timing.critical_path import CriticalPath, find_critical_path
from etrace.timing.recipe_order import find_recipe_order, places_of_edges
from etrace.timing.what_if import Simulation

#: a sleep, in s
S = 0.1


def built(tree: Path, makefile: str, command: str = "make") -> tuple[list[str], CriticalPath]:
    """Trace a make; return the sleeps on its critical path, and the path."""
    name = "build.ninja" if command.startswith("ninja") else "Makefile"
    image = open_database(trace(tree, command, {name: makefile}))
    found = find_critical_path(image, Simulation(image, find_recipe_order(image)).network)
    rows, records = {step.execution for step in found.steps}, Records(image)
    return [name for row in rows if (name := records.argv(row)[0]) == "sleep"], found


LINES = f"\tsleep {S}\n\t@sleep {S}\n\t-sleep {S}\n"
FUNCTION = "F := $(shell sleep 0.1; echo x)\n"


@pytest.mark.parametrize(
    ("makefile", "command", "n"),
    [
        pytest.param(f"x:\n{LINES}\ttouch x\n", "make", 3, id="lines of one recipe"),
        pytest.param(f"all: a b\n.PHONY: a b\na b:\n{LINES}", "make", 3, id="of two recipes"),
        pytest.param(f"all: a b\n.PHONY: a b\na b:\n{LINES}", "make -j2", 3, id="at once"),
        pytest.param(
            f"T = sleep\nall: a b\na b:\n\t$(T) {S}\n\t$(T) {S}\n", "make", 2, id="variable"
        ),
        pytest.param(
            f".ONESHELL:\nall: a b\na b:\n\tsleep {S}\n\tsleep {S}\n", "make", 2, id="oneshell"
        ),
        pytest.param(f"all: b\nb: a\na b:\n\tsleep {S}\n", "make", 2, id="phony prerequisite"),
        pytest.param(f"all: b\nb: | a\na b:\n\tsleep {S}\n", "make", 2, id="order-only"),
        pytest.param(
            f"all: b\nb: s\n\tsleep {S}\ns: a\na:\n\tsleep {S}\n\t@touch stamp\n", "make", 2,
            id="through a rule without recipe",
        ),
        pytest.param(f"all: a b\na b:\n\tsleep {S}\n", "make", 1, id="nothing in common"),
        pytest.param(f"all: a b\na b:\n\tsleep {S}\n.NOTPARALLEL:\n", "make", 2, id="serial make"),
        pytest.param(
            f"all:\n\tsleep {S}\n\t$(MAKE) b\nb:\n\tsleep {S}\n", "make", 2, id="a make as a line"
        ),
        pytest.param(f"{FUNCTION}all:\n\tsleep {S}\n", "make", 2, id="shell function"),
        pytest.param(
            f"include m.mk\nall:\n\tsleep {S}\nm.mk:\n\tsleep {S}; touch m.mk\n", "make", 2,
            id="a makefile that is made",
        ),
        pytest.param(
            f"rule s\n  command = sleep {S}; touch $out\nbuild a: s\nbuild b: s || a\n", "ninja", 2,
            id="ninja",
        ),
        pytest.param(
            f"rule s\n  command = sleep {S}; touch $out\nbuild a: s\nbuild p: phony a\n"
            "build b: s || p\n",
            "ninja -j1", 2, id="phony of ninja",
        ),
    ],
)  # fmt: skip
def test_what_waits_by_the_rules(tmp_path: Path, makefile: str, command: str, n: int) -> None:
    sleeps, found = built(tmp_path, makefile, command)
    assert not found.is_lower_bound, (found.unknown, found.stray_ns)
    assert len(sleeps) == n


def test_a_build_of_somebody_else_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = trace(tmp_path / "tree", "make", {"Makefile": f"x:\n{LINES}"})
    monkeypatch.setattr("etrace.sandbox.run.run", lambda *_, **__: pytest.fail("make was run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # as somebody who did not
    assert cas(["pp", "--force", "--targets", "-q", "--db", str(tree)]) == 0
    image = open_database(tree)
    order = find_recipe_order(image)
    simulation = Simulation(image, order)
    found = find_critical_path(image, simulation.network)
    assert found.is_lower_bound
    assert "no mark shows" in next(iter(found.unknown.values()))
    prediction = simulation.predict({}, 3)
    assert prediction.predicted_most_ns is not None
    assert prediction.predicted_ns < 2 * S * 1e9 < prediction.predicted_most_ns


LONGEST_LAST = """\
rule s
  command = true $out
build short: s
build long1: s
build long2: s long1
build all: phony short long2
"""


@pytest.mark.parametrize(("version", "first"), [(5, "short"), (6, "long1"), (7, "long1")])
def test_ninja_begins_the_longest_way_since_1_12(tmp_path: Path, version: int, first: str) -> None:
    (tmp_path / "build.ninja").write_text(LONGEST_LAST)
    (tmp_path / ".ninja_log").write_text(f"# ninja log v{version}\n")
    rules = ninja_rules.ask(b"/usr/bin/ninja", ninja_rules.Started(tmp_path, "build.ninja"))
    assert isinstance(rules, Rules)
    graph = Graph(rules, [])
    places = places_of_edges(graph)
    names = ("short", "long1", "long2")
    assert min(names, key=lambda name: places[graph.of_path[rules.path(name)]]) == first
