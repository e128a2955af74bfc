# SPDX-License-Identifier: Apache-2.0
"""The argparse declarations of every program -> plain data, for man pages and completion.

`etrace_cat` is a C program: its declarations are read from what its `--help` prints.
"""

from __future__ import annotations

import argparse
import enum
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from etrace.cli import etraced as service
from etrace.cli import fleet, main, parser, unix_tracer, xray
from etrace.cli.cas import program as cas
from etrace.errors import EtraceError


class Kind(enum.Enum):
    """The kind of an option's value, for completion."""

    NONE = "none"  #: it takes no value
    FILE = "file"
    DIRECTORY = "directory"
    WORDS = "words"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Option:
    """One option, or an argument without a name; `words` are the values it may have."""

    names: tuple[str, ...]
    value: str
    kind: Kind
    words: tuple[str, ...]
    help: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a program, or a program without commands."""

    name: str
    aliases: tuple[str, ...]
    summary: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]
    epilog: str
    usage: str
    is_query: bool = False
    parent: str = ""  #: `etrace xray account` is xray-account, a child of xray

    @property
    def word(self) -> str:
        """The word on the command line; that of a child comes after its parent."""
        return self.name.removeprefix(f"{self.parent}-") if self.parent else self.name

    @property
    def title(self) -> str:
        """Its name in titles."""
        return f"{self.parent} {self.word}" if self.parent else ", ".join(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its aliases."""
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class Program:
    """One program: `usage` follows its name; `body` is its own declaration."""

    name: str
    summary: str
    usage: tuple[str, ...]
    body: Command
    commands: tuple[Command, ...] = ()
    exit_status: str = ""
    section: int = 1  #: of the manual


DIRECTORIES = {"DIR"}
FILES = {"FILE", "PATH", "INPUT", "OUTPUT", "LOG", "AFTER", "BINARY", "[N=]FILE"}
EXIT_STATUS = (
    "0 found or done; 1 nothing found, or no; 2 wrong usage, damaged input or failure; "
    "130 after Ctrl-C; 141 when the reader of the output has gone."
)
RUN_STATUS = f"{EXIT_STATUS} `etrace run` ends with the status of the traced command."


def _kind(value: str, words: Sequence[str], is_path: bool) -> Kind:
    if words:
        return Kind.WORDS
    if value in DIRECTORIES:
        return Kind.DIRECTORY
    return Kind.FILE if value in FILES or is_path else Kind.TEXT


def _option(action: argparse.Action, group: str) -> Option:
    choices = action.choices or getattr(action.type, "words", None) or ()
    words = tuple(str(choice) for choice in choices)
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    value = metavar or (f"{{{','.join(words)}}}" if words else action.dest.upper())
    takes_none = action.nargs == 0
    text = "" if action.help is None else action.help % {**vars(action), "prog": "etrace"}
    return Option(
        tuple(action.option_strings),
        "" if takes_none else value,
        Kind.NONE if takes_none else _kind(value, words, action.type is Path),
        words,
        text,
        group,
    )


def _options(declared: argparse.ArgumentParser) -> Iterator[Option]:
    standard = ("options", "positional arguments")
    for group in declared._action_groups:  # argparse has no public way
        title = group.title if group.title not in standard else ""
        for action in group._group_actions:
            if action.help != argparse.SUPPRESS:
                yield _option(action, title or "")


def _command(
    name: str,
    summary: str,
    declared: argparse.ArgumentParser,
    aliases: tuple[str, ...] = (),
    *,
    is_query: bool = False,
) -> Command:
    options = tuple(_options(declared))
    named = tuple(option for option in options if option.names)
    unnamed = tuple(option for option in options if not option.names)
    usage = " ".join(declared.format_usage().removeprefix("usage:").split())
    epilog = declared.epilog or ""
    return Command(name, aliases, summary, named, unnamed, epilog, usage, is_query)


def _with_children(parent: Command, children: Sequence[Command]) -> list[Command]:
    """Return a command with children, whose first argument is the word of a child."""
    words = tuple(child.word for child in children)
    which = Option((), "COMMAND", Kind.WORDS, words, "one of those below")
    return [replace(parent, arguments=(which,)), *children]


#: commands that have commands
FAMILIES = {"fleet": fleet, "xray": xray}


def _nested(name: str) -> list[Command]:
    children = []
    for c in FAMILIES[name].COMMANDS:
        declared = argparse.ArgumentParser(prog=f"etrace {name} {c.name}")
        FAMILIES[name].declare_command(c, declared)
        child = _command(f"{name}-{c.name}", c.summary, declared)
        children.append(replace(child, parent=name))
    return children


def _etrace() -> Program:
    commands = []
    for c in main.COMMANDS:
        declared = argparse.ArgumentParser(prog=f"etrace {c.name}")
        c.declare(declared)
        command = _command(c.name, c.summary, declared)
        commands += _with_children(command, _nested(c.name)) if c.name in FAMILIES else [command]
    top = _command("etrace", main.SUMMARY, main.top_parser())
    usage = ("[--help] [--version] COMMAND ...",)
    return Program("etrace", main.SUMMARY, usage, top, tuple(commands), RUN_STATUS)


def _etrace_parser() -> Program:
    declared = parser.make_parser()
    summary = "make a database of executions from event lines"
    body = _command("etrace_parser", summary, declared)
    usage = ("[OPTION]... INPUT... OUTPUT",)
    return Program("etrace_parser", summary, usage, body)


def _cas() -> Program:
    commands = []
    for c in cas.COMMANDS:
        declared = cas.make_parser(c, c.load())
        is_query = c in cas.QUERIES
        commands.append(_command(c.name, c.summary, declared, c.aliases, is_query=is_query))
    top = _command("cas", cas.SUMMARY, cas.top_parser())
    common = tuple(_options(cas.common_parser()))
    body = Command("cas", (), cas.SUMMARY, (*top.options, *common), (), "", "")
    usage = ("[OPTION]... QUERY [OPTION]... [QUERY [OPTION]...]...",)
    return Program("cas", cas.SUMMARY, usage, body, tuple(commands), EXIT_STATUS)


def etraced() -> Program:
    """Return the declaration of the service."""
    summary = service.SUMMARY
    body = _command(service.PROGRAM, summary, service.make_parser())
    return Program(service.PROGRAM, summary, ("[OPTION]...",), body, (), EXIT_STATUS, 8)


def tracer() -> Program:
    """Return the declaration of unix-tracer: what is completed there is another command."""
    body = _command(unix_tracer.PROGRAM, unix_tracer.SUMMARY, unix_tracer.make_parser())
    usage = (unix_tracer.USAGE.removeprefix(f"{unix_tracer.PROGRAM} "),)
    return Program(unix_tracer.PROGRAM, unix_tracer.SUMMARY, usage, body)


# ---- a C program ----

_HELP_LINE = re.compile(
    r" {2}(?P<names>--?[\w-]+(?:, --?[\w-]+)*)(?: (?P<value>[A-Z]+))? +(?P<text>\S.*)"
)


def _c_option(found: re.Match[str]) -> Option:
    names = tuple(name.strip() for name in found["names"].split(","))
    value = found["value"] or ""
    return Option(names, value, _kind(value, (), False) if value else Kind.NONE, (), found["text"])


def read_help(name: str, text: str) -> Program:
    """Read the declaration of a C program from its `--help`: usage, text, options, exit status."""
    head, description, options, status = text.strip().split("\n\n")
    words = " ".join(head.removeprefix("usage:").split())
    usage = tuple(part.strip() for part in words.split(f"{name} ") if part.strip())
    found = [match for line in options.splitlines() if (match := _HELP_LINE.fullmatch(line))]
    if len(found) != len(options.splitlines()):
        raise EtraceError(f"{name} --help has lines that are not options")
    summary = "print the records of the kernel module as event lines, in the order of time"
    declared = tuple(_c_option(match) for match in found)
    body = Command(name, (), summary, declared, (), " ".join(description.split()), words)
    return Program(name, summary, usage, body, (), status.removeprefix("Exit status: "))


def etrace_cat(command: Path) -> Program:
    """Return the declaration of `etrace_cat`, which is at `command`."""
    shown = subprocess.run([command, "--help"], check=True, capture_output=True, text=True)
    return read_help("etrace_cat", shown.stdout)


def programs() -> tuple[Program, ...]:
    """Return the declarations of the Python programs; imports every command."""
    return _etrace(), _etrace_parser(), _cas()
