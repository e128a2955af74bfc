# SPDX-License-Identifier: Apache-2.0
"""Filters as text: what they mean, and where the caret of an error is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etrace.query.select.filters import EXECUTIONS, OPENS, FilterError, Grammar, parse


def meaning(text: str, grammar: Grammar = OPENS) -> list[list[dict[str, str]]]:
    return [[dict(part.values) for part in parts] for parts in parse(text, grammar).alternatives]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[path=a]", [[{"path": "a"}]]),
        ("(path=a)", [[{"path": "a"}]]),
        ("path=a", [[{"path": "a"}]]),
        ("a.c", [[{"path": "a.c"}]]),
        ("[a.c,negate=1]", [[{"path": "a.c", "negate": "1"}]]),
        ("[path=a,type=wc]", [[{"path": "a", "type": "wc"}]]),
        ("[path=a]and[access=r]", [[{"path": "a"}, {"access": "r"}]]),
        (
            "[path=a]and(link=1)or[exists=2]",
            [[{"path": "a"}, {"link": "1"}], [{"exists": "2"}]],
        ),
        (" [path=a] or [path=b] ", [[{"path": "a"}], [{"path": "b"}]]),
        ("[path=a=b]", [[{"path": "a=b"}]]),
        ('[path="*.[ch],(x)=\\"\\\\",type=wc]', [[{"path": '*.[ch],(x)="\\', "type": "wc"}]]),
        ("[path='a,b']", [[{"path": "a,b"}]]),
        ("[path='']", [[{"path": ""}]]),
        ("[class=linked_exe|compiled]", [[{"class": "linked_exe|compiled"}]]),
        ("[path=band]or[path=order]", [[{"path": "band"}], [{"path": "order"}]]),
    ],
)
def test_a_filter_is_alternatives_of_parts(text: str, wanted: list[list[dict[str, str]]]) -> None:
    assert meaning(text) == wanted


def test_a_bare_word_of_a_command_filter_is_a_command() -> None:
    assert meaning("[ -c ]and[bin=gcc]", EXECUTIONS) == [[{"cmd": " -c "}, {"bin": "gcc"}]]


@pytest.mark.parametrize(
    ("text", "at", "message", "hint"),
    [
        ("[pth=a]", 1, "unknown key 'pth'", "did you mean path?"),
        ("[path=a", 0, "'[' is never closed", "end the part by ]"),
        ("[path=a)", 7, "'[' is closed by ']', not ')'", ""),
        ("path=a]", 6, "']' was never opened", ""),
        ("[path=a][path=b]", 8, "'and' or 'or' is missing between parts", "as in"),
        ("[path=a]and", 8, "a part in brackets is missing here", "as in"),
        ("[path=*.[ch]]", 8, "'[' in a value", "quote a value"),
        ("[path=a,]", 8, "expected a value for 'path'", ""),
        ("[]", 1, "expected a value for 'path'", ""),
        ("", 0, "expected a value for 'path'", ""),
        ("[path=(a)]", 6, "expected a value for 'path'", "quote a value"),
        ("[path='a]", 6, "the quote ' is never closed", ""),
        ("[path='a'b]", 9, "expected ',' or ']'", "quote a value"),
        ("[path=a,path=b]", 8, "'path' is given twice", "join two parts"),
        ("[access=r]or[access=x]", 20, "'access' cannot be 'x'", "it is one of r, w, rw, ro, wo"),
        ("[class=linked|plan]", 7, "'class' cannot be 'plan'", "it is one of linked"),
        ("[type=re]", 0, "'type' without a text to compare (path)", ""),
    ],
)
def test_an_error_points_at_the_character(text: str, at: int, message: str, hint: str) -> None:
    with pytest.raises(FilterError) as error:
        parse(text, OPENS)
    assert error.value.message == f"--filter: {message}\n    {text}\n    {' ' * at}^"
    assert error.value.hint.startswith(hint)
    assert bool(error.value.hint) == bool(hint)


def test_a_parent_is_a_number() -> None:
    with pytest.raises(FilterError) as error:
        parse("[ppid=make]", EXECUTIONS)
    assert error.value.at == 6


@given(st.text(alphabet="[]()\"',=|\\ andorpthx\u017c", max_size=30))
def test_any_text_is_a_filter_or_an_error_within_it(text: str) -> None:
    at = None
    try:
        parsed = parse(text, OPENS)
    except FilterError as error:
        at = error.at
    else:
        assert all(part.values for parts in parsed.alternatives for part in parts)
    assert at is None or 0 <= at <= len(text)


@given(st.text(max_size=20))
def test_a_quoted_value_comes_back_as_it_was(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    assert meaning(f'[path="{quoted}"]') == [[{"path": value}]]
