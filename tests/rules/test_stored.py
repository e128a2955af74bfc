# SPDX-License-Identifier: Apache-2.0
"""The rules that cas pp reads, and keeps in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from traced_builds import found, keys, trace

from etrace.cli.main import cas
from etrace.nfsdb.store import open_database
from etrace.query.rows.records import Records
from etrace.rules import declared, stored, targets
from etrace.rules.recipes import Recipes
from etrace.rules.rule import Rule, Rules

MAKEFILE = """\
all: out/b 'a name.o' lib(x.o)
.PHONY: all
.NOTPARALLEL: all
out/b: a.c | out .WAIT later
\t@cp $< $@
\ttouch $@
out:; mkdir $@
later:
\techo > $@
%.o: %.c
\tcat '$<' > '$@'
lib(x.o): x.o
\tcat x.o > lib
d:: a.c
\techo >> d
d:: x.c
\techo >> d
one two &: a.c
\techo > one; echo > two
"""
SOURCES = {"Makefile": MAKEFILE, "a.c": "", "x.c": "", "a name.c": ""}
NINJA = """\
rule cat
  command = cat a.c h > $out; echo '$out: h' > $out.d
  depfile = $out.d
build a.o | side: cat a.c || order
build order: phony x.c
default a.o
"""


def rules_of(asked: declared.Asked) -> Sequence[Rules]:
    return list(asked.rules.values())


def of_stored(tree: Path) -> declared.Asked:
    return stored.read(open_database(tree))


def run_pp(tree: Path, *options: str) -> declared.Asked:
    assert cas(["pp", "--targets", "--force", "-q", *options, "--db", str(tree)]) == 0
    return of_stored(tree)


@pytest.mark.parametrize(
    ("command", "sources"),
    [
        ("make -k all d one; true", SOURCES),
        ("ninja; touch side", {"build.ninja": NINJA, "a.c": "", "h": "", "x.c": ""}),
    ],
    ids=["make", "ninja"],
)
def test_what_is_stored_is_what_was_read(
    tmp_path: Path, command: str, sources: dict[str, str]
) -> None:
    image = open_database(trace(tmp_path, command, sources))
    asked = declared.ask(Recipes(Records(image)), runs_shell=True)
    kept = stored.read(image)
    assert list(kept.rules) == list(asked.rules)
    assert len(kept.rules) == 1
    for own, other in zip(rules_of(kept), rules_of(asked), strict=True):
        assert dict(own.rules) == {name: own_lists(rule) for name, rule in other.rules.items()}
        assert len(own.rules) > 1
        for name in ("directory", "tool", "is_serial", "makefiles", "default_goal", "roots"):
            assert getattr(own, name) == getattr(other, name)


def own_lists(rule: Rule) -> Rule:
    """Return a rule with plain lists, as tables give them."""
    return replace(rule, recipe=list(rule.recipe))


def test_outputs_of_an_edge_share_one_row(tmp_path: Path) -> None:
    outputs = [f"o{n}" for n in range(500)]
    headers = [f"h{n}" for n in range(500)]
    rules = f"rule r\n  command = touch {' '.join(outputs)}\n"
    rules += f"build {' '.join(outputs)}: r {' '.join(headers)}\n"
    sources = {"build.ninja": rules, **dict.fromkeys(headers, "")}
    image = open_database(trace(tmp_path, "ninja", sources))
    assert image["rule_outputs"].n_rows == 500
    assert image["rule_prerequisites"].n_rows == 1000  # the headers, and that they are made at once


def test_a_makefile_that_changed_since_counts_in_the_next_build(tmp_path: Path) -> None:
    right = "all: b\nb: a\n\tcat a > b\n"
    tree = trace(tmp_path, "make", {"Makefile": right, "a": "", "c": ""})
    (tree / "Makefile").write_text(right.replace("cat a", "cat a c").replace("b: a", "b:"))
    assert keys(tree) == []
    (rules,) = rules_of(run_pp(tree))
    assert rules.rules["b"].needs == ()


def test_a_view_of_a_strangers_database_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sub = "all:\n\tcat a > b\n\tninja -C s\n"
    ninja = {"s/build.ninja": "rule r\n  command = touch $out\nbuild x: r\n"}
    tree = trace(tmp_path / "tree", "make", {"Makefile": sub, "a": "", **ninja})
    assert len(of_stored(tree).rules) == 2
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("make_database.read", "ninja_rules.ask", "sandbox.run"):
        monkeypatch.setattr(f"etrace.rules.declared.{name}", lambda *_, **__: pytest.fail("read"))
    asked = run_pp(tree)
    assert asked.rules == {}
    assert set(asked.unknown.values()) == {targets.NOT_CAPTURED}


def test_rules_are_left_out_on_demand(tmp_path: Path) -> None:
    rules = "X := $(shell touch made; echo a)\nall: b\nb: $(X)\n\tcat a > b\n"
    tree = trace(tmp_path, "make", {"Makefile": rules, "a": ""})
    (tree / "made").unlink()
    assert len(run_pp(tree).rules) == 1
    assert not (tree / "made").exists()
    asked = run_pp(tree, "--no-shell")
    assert asked.rules == {}
    assert "$(shell)" in next(iter(asked.unknown.values()))
    assert run_pp(tree, "--no-rules") == declared.Asked()
    assert keys(tree, runs_shell=True) == []  # which asks for them


def test_a_short_build_is_not_held_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "all:\n\tcat a > b\n\t$(MAKE) -f other\n"
    sources = {"Makefile": rules, "other": "c:\n\tcat a b > c\n", "a": ""}
    tree = trace(tmp_path, "make", sources)
    monkeypatch.setattr(targets, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(targets, "MOST_OF_BUILD", 0.0)
    asked = run_pp(tree)
    assert asked.rules == {}
    assert set(asked.unknown.values()) == {declared.TOO_LONG}
    assert "missing-input b c" in [fault.key for fault in found(tree).faults]
