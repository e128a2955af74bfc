# SPDX-License-Identifier: Apache-2.0
"""Examples of help texts and of documents: each command takes its own, by the names of today."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from etrace.cli import main, parser
from etrace.cli.cas import program
from etrace.cli.manual.declarations import FAMILIES, programs
from etrace.cli.options.common import Parser

EXAMPLES = re.compile(r"(?:^|\n\n)examples:\n((?:  \S.*\n)+)")
COMMANDS = {
    " ".join(filter(None, (each.name, c.parent, c.word) if each.commands else (c.name,))): c
    for each in programs()
    for c in each.commands or (each.body,)
}


def examples_of(words: str) -> list[list[str]]:
    """Return the examples of a command, without sudo and what the shell takes."""
    found = EXAMPLES.search(COMMANDS[words].epilog)
    assert found, f"{words} --help has no examples"
    return [
        shlex.split(line.partition(" > ")[0].strip().removeprefix("sudo "))
        for line in found[1].splitlines()
    ]


def take(words: Sequence[str]) -> None:
    """Parse a command line as its program does; a wrong one is SystemExit or UsageError."""
    name, *rest = words
    if name == "etrace_parser":
        parser.make_parser().parse_args(rest)
    elif name == "etrace" and rest[0] in FAMILIES:
        command = next(c for c in FAMILIES[rest[0]].COMMANDS if c.name == rest[1])
        declared = Parser(prog="x")
        FAMILIES[rest[0]].declare_command(command, declared)
        declared.parse_args(rest[2:])
    elif name == "etrace":
        etrace_command = next(c for c in main.COMMANDS if c.name == rest[0])
        main._arguments(etrace_command, rest[1:])
    elif program.find(rest[0]) in program.PLAIN:
        plain = program.find(rest[0])
        program._parse_plain(program.make_parser(plain, plain.load()), [], rest[1:])
    else:
        for step in program.steps_of(rest):
            step.parser.parse_intermixed_args(step.words)


@pytest.mark.parametrize(
    "words", [words for words in COMMANDS if words.partition(" ")[2] not in FAMILIES]
)
def test_a_command_has_two_examples_which_it_takes(words: str) -> None:
    examples = examples_of(words)
    assert len(examples) >= 2
    if words != "etrace doctor":  # it has no options
        assert len({" ".join(example) for example in examples}) == len(examples)
    for example in examples:
        assert " ".join(example).startswith(words) or words.split()[1] in example, example
        take(example)


@pytest.mark.parametrize(
    "line",
    ["cas deps --nothing", "cas parse --nothing", "etrace report --nothing",
     "etrace xray dump --nothing x", "etrace_parser --nothing a b"],
)  # fmt: skip
def test_an_example_with_an_unknown_option_would_be_noticed(line: str) -> None:
    with pytest.raises(SystemExit):
        take(line.split())


def test_examples_have_lines_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.cas(["deps", "--help"])
    assert "\n\nexamples:\n  cas deps src/lua --count\n  cas deps " in capsys.readouterr().out


# ---- documents

TOP = Path(__file__).parents[2]
PAGES = sorted([TOP / "README.md", *(TOP / "docs").glob("*.md")])
BLOCK = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^(?:sudo )?((?:cas|etrace) [a-z].*)$", re.MULTILINE)
#: of messages, usages, lines that go on and the head of .nfsdb.rsp
NO_COMMAND = re.compile(r"\.\.|: | \[-|^etrace response files")
PROMPT = re.compile(r"^\$ (.*)$", re.MULTILINE)


def commands_of(page: str) -> Iterator[list[str]]:
    """Yield the command lines in the code blocks of a page, those with parts left out excepted."""
    blocks = ("\n".join(PROMPT.findall(block)) or block for block in BLOCK.findall(page))
    for line in LINE.findall("\n".join(blocks)):
        if line.count('"') % 2 == 0 and not NO_COMMAND.search(line):
            words = shlex.split(line, comments=True)
            yield words[: words.index(">")] if ">" in words else words


def shown_options(words: Sequence[str]) -> set[str]:
    """Return the options that help shows of the commands in a line."""
    named = [c for c in COMMANDS.values() if {c.word, *c.aliases} & set(words)]
    return {name for c in named for option in c.options for name in option.names}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_command_lines_of_a_document_are_taken(page: Path) -> None:
    for words in commands_of(page.read_text()):
        take(words)
        own = words[: words.index("--")] if "--" in words else words
        given = {word.partition("=")[0] for word in own if word.startswith("--")}
        assert given <= shown_options(own), words


def test_command_lines_of_documents_are_found() -> None:
    assert sum(1 for page in PAGES for _ in commands_of(page.read_text())) > 50


def test_a_former_name_of_an_option_would_be_noticed() -> None:
    words = ["etrace", "critical-path", "--jobs", "8"]
    take(words)
    assert "--jobs" not in shown_options(words)
