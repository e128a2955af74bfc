# SPDX-License-Identifier: Apache-2.0
"""Options of compilers and linkers, compared with their own help."""

from __future__ import annotations

import re
import subprocess

import pytest
from backends import need_tool

from etrace.compilers import tools
from etrace.compilers.options import INPUT, UNKNOWN, Argument, Options, values
from etrace.compilers.tools import load

#: cc1 takes a file after them, the driver does not
ONLY_IN_CC1 = {"-MD", "-MMD", "--write-dependencies", "--write-user-dependencies"}
#: `gcc --help` calls them so, the driver does not know them
NOT_OF_THE_DRIVER = {"-gnatO"}


def helped(*command: str) -> list[list[str]]:
    """Return the option lines of a compiler's help, in words."""
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    lines = (line.split() for line in done.stdout.splitlines() if re.match(r"  -", line))
    return [words for words in lines if words]


def takes_next(options: Options, flag: str) -> bool:
    """Whether an option takes the next argument."""
    return options.parse([flag.encode(), b"VALUE"]) == [
        Argument(options.forms[f"{flag} ARG"], flag.encode(), b"VALUE")
        if f"{flag} ARG" in options.forms
        else Argument(UNKNOWN, flag.encode(), b"")
    ]


def test_options_with_a_separate_argument_are_those_of_gcc() -> None:
    words = [w[0] for w in helped("gcc", "--help=separate") if not w[0].endswith("=")]
    listed = {re.split(r"[<=]", word)[0] for word in words}
    wanted = listed - ONLY_IN_CC1 - NOT_OF_THE_DRIVER
    assert len(wanted) > 20
    assert {flag for flag in wanted if not takes_next(load()["gcc"].options, flag)} == set()


@pytest.mark.parametrize("flag", ["-MD", "-MMD"])
def test_the_dependency_options_of_the_stage_take_a_file(flag: str) -> None:
    tools = load()
    assert takes_next(tools["cc1"].options, flag)
    assert not takes_next(tools["gcc"].options, flag)


@pytest.mark.parametrize("program", ["clang", "clang-19"])  # of the suite, and a newer one
@pytest.mark.parametrize("tool", ["clang", "clang -cc1"])
def test_options_with_a_separate_argument_are_those_of_clang(tool: str, program: str) -> None:
    command = [program, *tool.split()[1:], "--help"]
    lines = [words for words in helped(*command) if len(words) > 1 and words[1][0] == "<"]
    listed = {words[0] for words in lines if not re.search("[=<]", words[0])}
    assert len(listed) > 40
    assert {flag for flag in listed if not takes_next(load()[tool].options, flag)} == set()


def test_joined_options_of_gcc_do_not_take_the_next_argument() -> None:
    options = load()["gcc"].options
    words = [w[0] for w in helped("gcc", "--help=joined,^separate")]
    flags = {word.partition("<")[0].partition("[")[0] for word in words}
    assert len(flags) > 5
    taken = [f for f in flags if len(options.parse([f"{f}x".encode(), b"NEXT"])) != 2]
    assert taken == []


def test_exact_forms_win_over_joined_ones_and_longer_over_shorter() -> None:
    options = Options({"-I ARG": "a", "-IARG": "a", "-Iq": "b", "-IqqARG": "c", "-o": "d"})
    argv = [b"-I", b"x", b"-Ix", b"-Iq", b"-Iqr", b"-Iqqr", b"-o", b"-ox", b"y", b"-", b"", b"-I"]
    assert options.parse(argv) == [
        Argument("a", b"-I", b"x"),
        Argument("a", b"-I", b"x"),
        Argument("b", b"-Iq", b""),
        Argument("a", b"-I", b"qr"),
        Argument("c", b"-Iqq", b"r"),
        Argument("d", b"-o", b""),
        Argument(UNKNOWN, b"-ox", b""),
        Argument(INPUT, b"", b"y"),
        Argument(INPUT, b"", b"-"),
        Argument(INPUT, b"", b""),
    ]


def test_values_of_several_meanings_come_in_order() -> None:
    arguments = [Argument("a", b"-a", b"1"), Argument("b", b"-b", b"2"), Argument("a", b"-a", b"3")]
    assert values(arguments, "a") == [b"1", b"3"]
    assert values(arguments, "a", "b") == [b"1", b"2", b"3"]


def test_no_form_of_a_table_is_spelled_wrongly() -> None:
    """Each form is a flag with at most one ARG at its end, and each table has no form twice."""
    form = re.compile(r"[-/][^ ]*( ARG)?")  # cl has both
    wrong = [
        (tool.name, text)
        for tool in load()
        for text in tool.options.forms
        if tool.kind in ("compiler", "launcher") and not form.fullmatch(text)
    ]
    assert wrong == []


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
    known = set(WITH_ARGUMENT.findall(text)) - NOT_A_LINK - JOINED_ONLY
    assert len(known) > 20
    tool = tools.load().identify(path.encode(), name.encode())
    assert tool is not None
    unknown = {
        option for option in known if tool.options.parse([option.encode(), b"-o"])[0].value != b"-o"
    }
    assert unknown == set()
