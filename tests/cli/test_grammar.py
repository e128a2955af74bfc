# SPDX-License-Identifier: Apache-2.0
"""One command grammar: exit status, names and letters of options, in every command there is."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import databases
import pytest

from etrace.cli import main, spellings
from etrace.cli.cas import program
from etrace.cli.manual.declarations import FAMILIES, Command, Kind, Option, programs
from etrace.errors import EtraceError, NothingFoundError

PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "cas": main.cas, "etrace": main.etrace, "etrace_parser": main.etrace_parser,
}  # fmt: skip
#: arguments without which a command is used wrongly
NEEDED = {
    **dict.fromkeys(("cas deps", "cas rdeps", "cas moddeps"), ("/src/main.c",)),
    "cas revmoddeps": ("/src/libutil.a",),
    "cas why": ("/src/hello", "/src/main.c"),
    "cas export": ("json",),
    "cas sql": ("--tables",),
    "etrace attest": ("write",),
    "etrace xray join": ("log",),
}
WRONG = 2


def every_command() -> dict[str, Command]:
    """Return the declaration of every command, by its words; 50 and more."""
    found = {"etrace_parser": programs()[1].body}
    for each in (programs()[0], programs()[2]):
        for c in each.commands:
            found[" ".join(filter(None, (each.name, c.parent, c.word)))] = c
    return found


COMMANDS = every_command()


def status_of(*words: str) -> int:
    name, *rest = words
    try:
        return PROGRAMS[name](rest)
    except SystemExit as end:
        return int(end.code or 0)


def names_of(command: Command) -> set[str]:
    return {name for option in command.options for name in option.names}


def test_all_commands_are_looked_at() -> None:
    n_own = len(program.COMMANDS) + len(main.COMMANDS)
    n_own += sum(len(family.COMMANDS) for family in FAMILIES.values())
    assert len(COMMANDS) == n_own + 1  # etrace_parser
    assert n_own > 45


@pytest.mark.parametrize("words", COMMANDS)
def test_help_ends_with_0_and_an_unknown_option_with_2(words: str) -> None:
    assert status_of(*words.split(), "--help") == 0
    wrong = 125 if words == "etrace run" else WRONG
    assert status_of(*words.split(), "--no-such-option") in (wrong, WRONG)


OF_A_DATABASE = [words for words, c in COMMANDS.items() if "--db" in names_of(c)]


@pytest.mark.parametrize("words", OF_A_DATABASE)
@pytest.mark.parametrize("kind", ["missing", "damaged"])
def test_a_database_that_cannot_be_used_ends_with_2(
    words: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").touch()
    if kind == "damaged":
        (tmp_path / ".nfsdb.img").write_bytes(b"no image of a database")
    where = tmp_path if kind == "damaged" else tmp_path / "missing"
    assert status_of(*words.split(), *NEEDED.get(words, ()), "--db", str(where)) == WRONG


QUERIES = [words for words, c in COMMANDS.items() if c.is_query and words != "cas info"]


@pytest.mark.parametrize("words", QUERIES)
def test_a_query_ends_with_0_when_it_found_something_and_with_1_when_not(
    words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_DIR", str(databases.write_database(tmp_path)))
    status = status_of(*words.split(), *NEEDED.get(words, ()))
    assert status == (0 if capfd.readouterr().out else NothingFoundError.status)
    assert status_of(*words.split(), *NEEDED.get(words, ()), "--range", "0:0") == 1


def test_what_is_not_there_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_DIR", str(databases.write_database(tmp_path)))
    for words in ("refs /nowhere.c", "deps /nowhere.c", "ci /src/Makefile", "pr --pid 7"):
        assert status_of("cas", *words.split()) == 1, words


def test_an_error_ends_with_2() -> None:
    assert EtraceError.status == WRONG


# ---- options ----


def every_option() -> Iterator[tuple[str, str, Option]]:
    for words, command in COMMANDS.items():
        for option in command.options:
            yield from ((words, name, option) for name in option.names)


def test_a_letter_has_one_meaning() -> None:
    long: defaultdict[str, set[str]] = defaultdict(set)
    for _, name, option in every_option():
        if not name.startswith("--"):
            long[name].add(next(each for each in option.names if each.startswith("--")))
    assert {name: found for name, found in long.items() if len(found) > 1} == {}


def test_a_name_takes_a_value_everywhere_or_nowhere() -> None:
    takes: defaultdict[str, set[bool]] = defaultdict(set)
    for _, name, option in every_option():
        takes[name].add(option.kind is not Kind.NONE)
    assert [name for name, found in takes.items() if len(found) > 1] == []


def test_names_have_hyphens() -> None:
    assert [name for _, name, _ in every_option() if "_" in name] == []
    assert [words for words in COMMANDS if "_" in words] == ["etrace_parser"]


def test_json_is_the_short_form_of_a_format() -> None:
    for words, command in COMMANDS.items():
        formats = [option.words for option in command.options if "--format" in option.names]
        has_json = any("json" in each for each in formats)
        assert has_json == ("--json" in names_of(command)) or words == "etrace xray convert", words


def test_old_names_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(databases.write_database(tmp_path))
    for names in spellings.COMMANDS.values():
        assert all(program.find(name).name in spellings.COMMANDS for name in names)
    shown = set()
    for option in ("--db", "--dbdir", "--dir"):
        assert status_of("cas", option, database, "ref_files", "--json") == 0
        shown.add(capsys.readouterr().out)
    assert len(shown) == 1
    for name in spellings.FACTS:
        assert status_of("cas", name, "--dbdir", database) == 0
    assert status_of("cas", "deps_for", "/src/hello", "--no-with-pipes", "--dir", database) == 0


def test_an_old_name_is_that_of_an_option() -> None:
    shown = {name for _, name, _ in every_option()}
    assert spellings.OPTIONS.keys() <= shown
    parser = argparse.ArgumentParser()
    parser.add_argument("--db")
    spellings.accept(parser)
    assert parser.parse_args(["--dbdir=x"]).db == "x"
    assert "--dbdir" not in parser.format_help()


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("info --sorting-key x", "--sorting-key"), ("info counts --range 0:1", "--range"),
        ("version --reverse", "--reverse"), ("stat -n 3", "--entries-per-page"),
        ("info -l", "--count"), ("faccess --relative", "--relative"),
        ("refs --raw-command", "--raw-command"), ("lm --original-path", "--original-path"),
        ("refs -0 --json", "--null"),
    ],
)  # fmt: skip
def test_an_option_that_does_nothing_is_refused(
    words: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = databases.write_database(tmp_path)
    assert status_of("cas", *words.split(), "--db", str(database)) == WRONG
    assert f"cas: error: {option} does nothing here: " in capsys.readouterr().err
