# SPDX-License-Identifier: Apache-2.0
"""events.toml as checked, frozen values: what templates are rendered from."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

from etrace.errors import SpecError


class Numbering(StrEnum):
    """How the number in `TAG[n]` counts."""

    STRING = "string"  #: parts of a long string; `TAG|text` when short, `TAG_end` when long
    ITEM = "item"  #: items of a list; parts of one item repeat its number
    PART = "part"  #: parts of one string, always numbered, no end line


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of the format, with its unit."""

    name: str
    value: int
    unit: str
    doc: str


@dataclass(frozen=True, slots=True)
class Marker:
    """A fixed text of the format that is not an event or a string."""

    name: str
    text: str
    doc: str


@dataclass(frozen=True, slots=True)
class Argument:
    """One `name=value` of an event line; `size_of`: position of a string in `Event.data` or -1."""

    name: str
    kind: str
    size_of: int
    doc: str


@dataclass(frozen=True, slots=True)
class Event:
    """One event line: its tag, arguments in order and the tags of the strings that follow."""

    tag: str
    family: str
    doc: str
    args: tuple[Argument, ...]
    data: tuple[str, ...]
    bare: Argument | None

    @property
    def symbol(self) -> str:
        """Upper-case C name, such as `NEW_PROC` or `SYS_CLONE_FAILED`."""
        out = ""
        for before, char in zip(" " + self.tag, self.tag, strict=False):
            out += "_" if char.isupper() and before.islower() else ""
            out += char.upper()
        return out

    @property
    def n_values(self) -> int:
        """How many numbers a caller gives: the arguments that are not sizes of strings."""
        return sum(a.size_of < 0 for a in self.args) + (self.bare is not None)


@dataclass(frozen=True, slots=True)
class Data:
    """One kind of string."""

    tag: str
    doc: str
    numbering: Numbering

    @property
    def symbol(self) -> str:
        """Upper-case C name."""
        return self.tag.upper()


@dataclass(frozen=True, slots=True)
class Spec:
    """The whole format."""

    limits: tuple[Limit, ...]
    markers: tuple[Marker, ...]
    events: tuple[Event, ...]
    data: tuple[Data, ...]

    def event(self, tag: str) -> Event:
        """Return the event with this tag; KeyError when there is none."""
        return next((e for e in self.events if e.tag == tag), None) or _missing(tag)

    def limit(self, name: str) -> int:
        """Return the value of a limit; KeyError when there is none."""
        return next((v.value for v in self.limits if v.name == name), None) or _missing(name)


def _missing(name: str) -> Any:
    raise KeyError(name)


def _argument(raw: dict[str, Any], data: tuple[str, ...], where: str) -> Argument:
    size_of = raw.get("size_of")
    if (size_of is None) == ("kind" not in raw):
        raise SpecError(
            f"events.toml: {where}: argument {raw['name']} needs either kind or size_of"
        )
    if size_of is not None and size_of not in data:
        raise SpecError(
            f"events.toml: {where}: {raw['name']} is the size of {size_of}, not in data"
        )
    index = -1 if size_of is None else data.index(size_of)
    return Argument(raw["name"], raw.get("kind", "u32"), index, raw["doc"])


def _event(raw: dict[str, Any]) -> Event:
    data = tuple(raw.get("data", ()))
    args = tuple(_argument(a, data, raw["tag"]) for a in raw.get("args", ()))
    bare = _argument(raw["bare"], data, raw["tag"]) if "bare" in raw else None
    if sorted(a.size_of for a in args if a.size_of >= 0) != list(range(len(data))):
        raise SpecError(f"events.toml: {raw['tag']}: each string needs exactly one size argument")
    return Event(raw["tag"], raw["family"], raw["doc"], args, data, bare)


def parse(text: str) -> Spec:
    """Turn the text of an events.toml into a `Spec`; SpecError says which entry is wrong."""
    raw = tomllib.loads(text)
    spec = Spec(
        limits=tuple(Limit(k, *v) for k, v in raw["limits"].items()),
        markers=tuple(Marker(k, *v) for k, v in raw["markers"].items()),
        events=tuple(_event(e) for e in raw["event"]),
        data=tuple(
            Data(d["tag"], d["doc"], Numbering(d.get("numbering", "string"))) for d in raw["data"]
        ),
    )
    tags = [e.tag for e in spec.events] + [d.tag for d in spec.data]
    if len(tags) != len(set(tags)):
        raise SpecError("events.toml: a tag is defined twice")
    known = {d.tag for d in spec.data}
    for event in spec.events:
        if not known.issuperset(event.data):
            raise SpecError(f"events.toml: {event.tag} uses a string that [[data]] does not define")
    return spec


def load() -> Spec:
    """Read the events.toml of this package."""
    return parse((files("etrace.spec") / "events.toml").read_text())
