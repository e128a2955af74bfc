# SPDX-License-Identifier: Apache-2.0
"""etrace/spec/model.py: events.toml agrees with seed 004 and its errors name the entry."""

from __future__ import annotations

import event_lines
import pytest

from etrace.errors import SpecError
from etrace.spec import model

HEAD = """
[limits]
part_bytes = [900, "bytes", "a part"]
[markers]
cont = ["Cont", "after a newline"]
"""
DATA = """
[[data]]
tag = "FN"
doc = "a path"
"""


def event(body: str, tag: str = "Open") -> str:
    return f'[[event]]\ntag = "{tag}"\nfamily = "open"\ndoc = "A file."\n{body}\n'


def test_every_event_has_the_arguments_and_strings_that_seed_004_prints() -> None:
    spec = model.load()
    for tag in event_lines.SYNTAX:
        own = spec.event(tag)
        shown = [(arg.name, own.data[arg.size_of] if arg.size_of >= 0 else arg.kind)
                 for arg in own.args]  # fmt: skip
        assert shown == [(name, kind) for name, kind, _ in event_lines.arguments(tag)]


def test_only_the_environment_goes_beyond_seed_004() -> None:
    spec = model.load()
    assert {e.tag for e in spec.events} - set(event_lines.SYNTAX) == {"UPID"}
    named = {kind for tag in event_lines.SYNTAX for _, kind, _ in event_lines.arguments(tag)}
    assert {d.tag for d in spec.data} - named == {"A", "Env"}


def test_the_limits_are_those_of_the_seed() -> None:
    spec = model.load()
    assert spec.limit("part_bytes") == event_lines.PART_BYTES
    assert spec.limit("upid_pid_bits") == 22
    assert spec.limit("signal_status_base") == 128


def test_arguments_lists_and_variables_are_numbered_in_their_own_ways() -> None:
    special = {d.tag: d.numbering for d in model.load().data if d.numbering != "string"}
    assert special == {"A": model.Numbering.ITEM, "Env": model.Numbering.PART}


@pytest.mark.parametrize(
    ("tag", "symbol"),
    [
        ("New_proc", "NEW_PROC"),
        ("SysCloneFailed", "SYS_CLONE_FAILED"),
        ("UPID", "UPID"),
        ("Comm", "COMM"),
    ],
)
def test_symbols_are_upper_case_words(tag: str, symbol: str) -> None:
    assert model.load().event(tag).symbol == symbol


def test_a_caller_gives_the_numbers_that_are_not_sizes() -> None:
    spec = model.load()
    counts = {tag: spec.event(tag).n_values for tag in ("Open", "RenameFrom", "UPID", "New_proc")}
    assert counts == {"Open": 3, "RenameFrom": 0, "UPID": 1, "New_proc": 1}


def test_a_small_spec_becomes_whole_values() -> None:
    args = 'args = [{ name = "fnamesize", size_of = "FN", doc = "length" }]\ndata = ["FN"]'
    assert model.parse(HEAD + event(args) + DATA) == model.Spec(
        limits=(model.Limit("part_bytes", 900, "bytes", "a part"),),
        markers=(model.Marker("cont", "Cont", "after a newline"),),
        events=(
            model.Event(
                "Open", "open", "A file.",
                (model.Argument("fnamesize", "u32", 0, "length"),), ("FN",), None,
            ),
        ),
        data=(model.Data("FN", "a path", model.Numbering.STRING),),
    )  # fmt: skip


BAD = {
    "argument fd needs either kind or size_of": event('args = [{ name = "fd", doc = "d" }]'),
    "argument n needs either kind or size_of": event(
        'args = [{ name = "n", kind = "u32", size_of = "FN", doc = "d" }]\ndata = ["FN"]'
    ),
    "n is the size of FO, not in data": event(
        'args = [{ name = "n", size_of = "FO", doc = "d" }]\ndata = ["FN"]'
    ),
    "Open: each string needs exactly one size argument": event('data = ["FN"]'),
    "a tag is defined twice": event("") + event(""),
    "Close uses a string that [[data]] does not define": event(
        'args = [{ name = "n", size_of = "XX", doc = "d" }]\ndata = ["XX"]', tag="Close"
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_a_contradiction_is_a_spec_error_that_names_the_entry(message: str) -> None:
    with pytest.raises(SpecError) as caught:
        model.parse(HEAD + BAD[message] + DATA)
    assert message in caught.value.message
    assert caught.value.message.startswith("events.toml: ")


def test_a_string_with_two_sizes_is_refused() -> None:
    sizes = ", ".join(f'{{ name = "{n}", size_of = "FN", doc = "d" }}' for n in "ab")
    with pytest.raises(SpecError, match="exactly one size"):
        model.parse(HEAD + event(f'args = [{sizes}]\ndata = ["FN"]') + DATA)


def test_an_event_and_a_string_cannot_share_a_tag() -> None:
    with pytest.raises(SpecError, match="twice"):
        model.parse(HEAD + event("", tag="FN") + DATA)


def test_unknown_names_are_key_errors() -> None:
    with pytest.raises(KeyError, match="Unlink"):
        model.load().event("Unlink")
    with pytest.raises(KeyError, match="no_such"):
        model.load().limit("no_such")
