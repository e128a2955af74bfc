# SPDX-License-Identifier: Apache-2.0
"""Rules of one make or ninja: names of one file, links, and what makes a target stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from etrace.rules.rule import Rule, Rules, absolute, place
from etrace.spec.builders import NINJA

LIBRARY = "libf.so.1.2.3"


def rules_of(tree: Path, *rules: Rule, **more: str) -> Rules:
    """Return rules in a tree."""
    return Rules(tree, {rule.name: rule for rule in rules}, **more)  # type: ignore[arg-type]


def needs(rules: Rules, one: str, other: str, *, order_only: bool = False) -> bool:
    """Whether the file of a name needs that of another one."""
    return rules.needs([rules.path(one)], [rules.path(other)], order_only=order_only)


def made(name: str, *names: str) -> Rule:
    """Return a rule with a recipe."""
    return Rule(name, names, has_recipe=True)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return a tree with a library, and a chain of links to it."""
    for name in (LIBRARY, "f.o", "f.c", "prog"):
        (tmp_path / name).touch()
    (tmp_path / "libf.so.1").symlink_to(LIBRARY)
    (tmp_path / "libf.so").symlink_to("libf.so.1")
    return tmp_path


CHAIN = (
    made(LIBRARY, "f.o"),
    made("libf.so.1", LIBRARY),
    made("libf.so", "libf.so.1"),
    made("prog", "libf.so"),
    made("f.o", "f.c"),
)


@pytest.mark.parametrize("tool", ["make", NINJA])
@pytest.mark.parametrize("turn", range(len(CHAIN)))
def test_links_have_rules_of_their_own_in_any_order(library: Path, tool: str, turn: int) -> None:
    rules = rules_of(library, *CHAIN[turn:], *CHAIN[:turn], tool=tool)
    assert rules.by_path[rules.path("libf.so")] == CHAIN[0]
    assert rules.names[str(library / "libf.so.1")] == "libf.so.1"
    for order_only in (False, True):
        assert needs(rules, LIBRARY, "f.o", order_only=order_only)
        assert needs(rules, "prog", LIBRARY, order_only=order_only)
        assert not needs(rules, "f.o", LIBRARY, order_only=order_only)


def test_a_link_without_the_file_among_its_needs_orders_nothing(library: Path) -> None:
    rules = rules_of(library, made(LIBRARY, "f.o"), made("libf.so"), made("prog", "libf.so"))
    assert needs(rules, "prog", LIBRARY)  # a change of the library is one of the link
    assert not needs(rules, "prog", LIBRARY, order_only=True)
    assert needs(rules, LIBRARY, "f.o", order_only=True)


def test_the_rule_of_a_link_is_that_of_the_file_it_makes(library: Path) -> None:
    rules = rules_of(library, made("libf.so", "f.o"), made("prog", "libf.so"))
    assert rules.by_path[str(library / LIBRARY)].name == "libf.so"
    assert rules.names[str(library / LIBRARY)] == "libf.so"
    for order_only in (False, True):
        assert needs(rules, LIBRARY, "f.o", order_only=order_only)
        assert needs(rules, "prog", LIBRARY, order_only=order_only)


def test_of_a_link_and_its_file_both_rules_count(library: Path) -> None:
    """`cp x libf.so` writes the file by the name of the link."""
    rules = rules_of(library, made(LIBRARY, "f.o"), made("libf.so", "f.c"))
    assert needs(rules, LIBRARY, "f.c")
    assert needs(rules, LIBRARY, "f.o")


def test_a_link_to_a_source_is_an_input_by_either_name(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "x.h").touch()
    (tmp_path / "config.h").symlink_to("configs/x.h")
    rules = rules_of(tmp_path, made("config.h"), made("a.o", "config.h"))
    assert needs(rules, "a.o", "configs/x.h")
    assert needs(rules, "a.o", "config.h")


def test_a_link_to_a_directory(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.h").touch()
    (tmp_path / "l").symlink_to("d")
    rules = rules_of(tmp_path, made("l"), made("a.o", "l/x.h", "l"), Rule("l/x.h", is_target=False))
    assert rules.path("l/x.h") == str(tmp_path / "d" / "x.h")
    assert needs(rules, "a.o", "d/x.h")
    assert rules.by_path[str(tmp_path / "l")].name == "l"


def test_a_link_that_leads_nowhere_is_made_in_every_run(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("gone")
    (tmp_path / "a").touch()
    rules = rules_of(tmp_path, made("l"), made("a", "l"))
    assert rules.runs_always([str(tmp_path / "a")])
    (tmp_path / "gone").touch()
    assert not rules_of(tmp_path, made("l"), made("a", "l")).runs_always([str(tmp_path / "a")])


def test_links_that_lead_to_each_other(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    rules = rules_of(tmp_path, made("a", "b"), made("b"), made("c", "a/x"))
    assert rules.runs_always([str(tmp_path / "a")])


def test_names_are_read_as_the_kernel_reads_them(tmp_path: Path) -> None:
    (tmp_path / "other" / "d").mkdir(parents=True)
    (tmp_path / "l").symlink_to("other/d")
    directory = str(tmp_path)
    assert place(directory, "l/../x.h") == f"{tmp_path}/other/x.h"
    assert place(directory, "l/..") == f"{tmp_path}/other"
    assert place(directory, "./other//d/./y") == f"{tmp_path}/other/d/y"
    assert (place(directory, "l"), place(directory, "l/")) == (f"{tmp_path}/l", f"{tmp_path}/l")
    assert absolute(directory, "l") == f"{tmp_path}/other/d"
    assert place(directory, "/") == "/"


def test_a_target_by_two_names(tmp_path: Path) -> None:
    """make knows them as two files: the one without a rule orders nothing."""
    for name in ("gen.sh", "gen.h", "a.o", "b.o"):
        (tmp_path / name).touch()
    other = f"{tmp_path}/gen.h"
    rules = rules_of(
        tmp_path, Rule(other, is_target=False), made("gen.h", "gen.sh"), made("a.o", "gen.h"),
        made("b.o", other),
    )  # fmt: skip
    assert rules.names[other] == "gen.h"
    for name in ("a.o", "b.o"):
        assert needs(rules, name, "gen.h")
    assert needs(rules, "a.o", "gen.h", order_only=True)
    assert not needs(rules, "b.o", "gen.h", order_only=True)
    both = rules_of(tmp_path, made(other, "gen.sh"), made("gen.h", "a.o"), made("b.o", other))
    assert needs(both, "gen.h", "gen.sh")
    assert needs(both, "gen.h", "a.o")
    assert needs(both, "b.o", "gen.h", order_only=True)


def test_a_file_without_a_recipe_passes_no_change_on(tmp_path: Path) -> None:
    for name in ("main.o", "main.c", "defs.h"):
        (tmp_path / name).touch()
    own = made("main.o", "main.c"), Rule("main.c", ("defs.h", "FORCE")), Rule("FORCE")
    rules = rules_of(tmp_path, *own)
    assert needs(rules, "main.o", "main.c")
    assert not needs(rules, "main.o", "defs.h")
    assert needs(rules, "main.o", "defs.h", order_only=True)
    assert not rules.runs_always([str(tmp_path / "main.o")])
    (tmp_path / "main.c").unlink()
    gone = rules_of(tmp_path, *own)
    assert needs(gone, "main.o", "defs.h")
    assert gone.runs_always([str(tmp_path / "main.o")])


def test_an_alias_that_is_a_file_passes_commands_on_only(tmp_path: Path) -> None:
    for name in ("main.o", "main.c", "defs.h", "gen.h", "gen.sh"):
        (tmp_path / name).touch()
    alias = Rule("main.c", ("defs.h", "gen.h", "more"), is_target=False)
    more = Rule("more", ("x.h", "other.h"), is_target=False)
    (tmp_path / "x.h").touch()
    (tmp_path / "other.h").touch()
    rules = rules_of(
        tmp_path, made("main.o", "main.c"), alias, made("gen.h", "gen.sh"), more,
        made("other.h"), tool=NINJA,
    )  # fmt: skip
    for name, expected in {
        "main.c": True, "defs.h": False, "gen.h": True, "gen.sh": True, "x.h": False,
        "other.h": True,
    }.items():  # fmt: skip
        assert needs(rules, "main.o", name) == expected, name


def test_an_input_that_a_compiler_named_and_that_is_gone_is_asked_for_always(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.o").touch()
    rules = rules_of(tmp_path, Rule("a.o", learned=("x.h",), has_recipe=True), tool=NINJA)
    assert rules.runs_always([str(tmp_path / "a.o")])


def test_what_make_wrote_itself_is_no_input_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "prog").touch()
    own = Rules(tmp_path, {"prog": made("prog")}, own_files=frozenset([f"{tmp_path}/prog.in"]))
    assert needs(own, "prog", "prog.in")
    assert not needs(own, "prog", "prog.in", order_only=True)


def test_members_of_an_archive_are_the_archive(tmp_path: Path) -> None:
    (tmp_path / "lib.a").touch()
    rules = rules_of(
        tmp_path, made("lib.a(a.o)", "a.o"), Rule("lib.a", ("lib.a(a.o)", "lib.a(b.o)")),
        made("lib.a(b.o)", "b.o"), made("prog", "lib.a"),
    )  # fmt: skip
    for order_only in (False, True):
        assert needs(rules, "lib.a", "b.o", order_only=order_only)
        assert needs(rules, "prog", "a.o", order_only=order_only)
    assert rules.names[str(tmp_path / "lib.a")] == "lib.a"
