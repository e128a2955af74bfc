# SPDX-License-Identifier: Apache-2.0
"""What docs/stability.md promises is still there: names of commands, formats and the library.

`python tests/test_stability.py` prints them as they are now; the list of a release is
tests/data/interface-1.txt. A line may be added to it, and none may go before 2.0.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import libetrace

from etrace.advise.rules import RULES
from etrace.check.kinds import KINDS
from etrace.cli.manual.declarations import programs
from etrace.fleet.questions import questions
from etrace.fleet.schema import TABLES

TOP = Path(__file__).resolve().parents[1]
PROMISED = Path(__file__).parent / "data" / "interface-1.txt"


def _options() -> Iterator[str]:
    for program in programs():
        for command in program.commands or (program.body,):
            words = " ".join(filter(None, (program.name, command.parent, command.word)))
            own = words if program.commands else program.name
            yield f"command {own}"
            for alias in command.aliases:
                yield f"command {program.name} {alias}"
            for option in command.options:
                yield from (f"option {own} {name}" for name in option.names)


def _formats() -> Iterator[str]:
    events = tomllib.loads((TOP / "etrace/spec/events.toml").read_text("utf-8"))
    for event in events["event"]:
        yield f"event {event['tag']} {','.join(each['name'] for each in event.get('args', ()))}"
    database = tomllib.loads((TOP / "etrace/spec/database.toml").read_text("utf-8"))
    for name, table in database["table"].items():
        columns = [key for key, value in table.items() if isinstance(value, list)]
        yield from (f"image {name}.{column}" for column in columns)
    for table in TABLES.values():
        yield from (f"fleet {table.name}.{column.name} {column.kind}" for column in table.columns)
    for asked in questions().values():
        yield f"fleet-query {asked.usage}"


def _library() -> Iterator[str]:
    for name in libetrace.__all__:
        value = getattr(libetrace, name)
        yield f"library {name}"
        if isinstance(value, type):
            own = (each for each in dir(value) if not each.startswith("_"))
            yield from (f"library {name}.{each}" for each in own)


def interface() -> list[str]:
    """Return everything that is promised, sorted."""
    ids = {f"fault {each}" for each in KINDS} | {
        f"advice {each}" for own, _ in RULES for each in own
    }
    return sorted({*_options(), *_formats(), *_library(), *ids})


def test_nothing_that_was_promised_has_gone() -> None:
    promised = set(PROMISED.read_text("utf-8").splitlines())
    assert len(promised) > 1000
    assert sorted(promised - set(interface())) == []


if __name__ == "__main__":
    print("\n".join(interface()))
