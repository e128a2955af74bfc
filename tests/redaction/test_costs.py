# SPDX-License-Identifier: Apache-2.0
"""The time of redaction is linear in the length of a word, whatever the word is."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Sequence
from importlib.resources import files

import pytest

from etrace.redaction import commands
from etrace.redaction.build import any_of

#: what some rule begins, goes on or ends with
PIECES = r"""
a|a.|a-|-|_|a:|::|:|=|a=|a=b;|a=b,|;|&|,|@|a@|a:b@|://|x://|x://u:p@|x://u:|x://a@b/|/|?|#|?key=|&token=
token=|token:|token=$(|password=|password='|password="
-p|--|--token |Authorization:|Authorization: a
-HAuthorization:|Cookie: a;|bearer |basic |Bearer a |eyJ|eyJ-|eyJa.|eyJaaaaaaaaa.|ghp_|sk-|AKIA
-----BEGIN |-----BEGIN PRIVATE KEY-----|login a password b
login |login\n|machine |password '|identified by
auth('a',|'|"|\|\"|'a|' |`|$(|(|)|echo a; |<<|<<<|<<< a| |a b |sh -c |sh -c '
"key":|key |key:|?key|{"token":|[|a]=
docker login |login - |docker -p |mysql -p|curl -u a:b |-u a -p b c
hooks.slack.com/services/|maker.ifttt.com/
SG.|SG.aaaaaaaaaaaaaaaa.|0123456789|f|AC|a1|%20|{{|${|%a%|@a@|@a@/|env:|*|<a|u/p@|1:|a:1:|a:1:b:c:
<a>|<a |<password>|<password>a|</|<key>|name="token"|name="token" value="
name="token" value="a|value='|printf "token %s" a|-aua:
auth(|auth("|auth("a",|connect("a:|connect("a:","|credentials=("a","a",|["a"] "
user=|user=a:|user:a%
echo a:b \| base64\n|base64|echo "%s:%s" a |read token |identified with a |\"\\"|/pass:|<<<a
https://u:p@h,|http://h:1/|//r/:_authToken=|set token |vault login |send "|send \\"|"a","|\na=b|\n
"""


def cpu_s(words: Sequence[str]) -> float:
    """Return the time of hiding what is secret in a command."""
    begin = time.process_time()
    commands._spans_of_loud(words, 0)  # without what is known of words already
    return time.process_time() - begin


def pieces() -> list[str]:
    """Return what words are made of: the pieces above, and the begin of each form of a token."""
    text = files("etrace.redaction").joinpath("tokens.toml").read_text(encoding="utf-8")
    forms = [re.sub(r"[\\(\[].*", "", form) for of in tomllib.loads(text).values() for form in of]
    found = [each for line in PIECES.strip("\n").splitlines() for each in line.split("|")]
    return [*dict.fromkeys(each for each in [*found, *forms, "\n", "a\nb", "|"] if each)]


@pytest.mark.parametrize("frame", ["{}", "password={}@", "sh -c {}"])
def test_the_time_of_a_word_grows_with_its_length(frame: str) -> None:
    first, _, rest = frame.partition(" -c ")
    before = [first, "-c"] if rest else []
    inner = rest or first
    slow = []
    for piece in pieces():
        n = 4_000 // len(piece)
        small, large = (
            min(cpu_s([*before, inner.format(piece * times)]) for _ in range(2))
            for times in (n, 8 * n)
        )
        if large > 24 * max(small, 0.005):  # the square would be 64 times
            slow.append((piece, small, large))
    assert slow == []


def test_a_command_of_many_words_takes_linear_time() -> None:
    for words in (
        ["docker", "login", "-p"],
        ["mysql", "-px"],
        ["vault", "login"],
        ["set", "token"],
    ):
        small, large = (min(cpu_s(words * n) for _ in range(3)) for n in (500, 4_000))
        assert large < 24 * max(small, 0.005), words


def test_many_values_are_found_in_one_pass() -> None:
    values = [f"value-{n:06d}-{n * 7919 % 10007}" for n in range(20_000)]
    pattern = any_of(values)
    assert pattern is not None
    text = " ".join(values[:5_000])
    begin = time.process_time()
    assert pattern.sub("", text).strip() == ""
    assert time.process_time() - begin < 2


def test_values_that_begin_others_are_found_whole() -> None:
    values = ["a" * n for n in range(1, 500)]
    pattern = any_of([*values, "b(c", "b(d"])
    assert pattern is not None
    assert pattern.sub("_", f"{'a' * 300} b(d b(e") == "_ _ b(e"
