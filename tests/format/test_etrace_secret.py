# SPDX-License-Identifier: Apache-2.0
"""Secrets in variables that captures keep: names as names.py reads them, values, the cost."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from etrace.redaction.names import LISTS, keeps
from etrace.redaction.texts import HIDDEN

TOP = Path(__file__).parents[2]
FORMAT = TOP / "native/format"
Hide = Callable[..., list[str]]
RANDOM = "q7Zk20abXY91mnPd"
#: switches, names of files, and secrets
VALUES = ("", "1", "yes", "OFF", "***", "/etc/keys/a.pem", "./x", RANDOM, "open sesame")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("hide") / "hide"
    subprocess.run(
        ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{FORMAT}", f"-I{TOP}/kmod/include", "-o", program,
         Path(__file__).with_name("hide_driver.c"), FORMAT / "etrace_secret.c"],
        check=True,
    )  # fmt: skip
    return program


@pytest.fixture
def hide(driver: Path) -> Hide:
    def hidden(variables: Sequence[str], *words: str) -> list[str]:
        text = b"".join(os.fsencode(each) + b"\0" for each in variables)
        done = subprocess.run([driver, *words], input=text, capture_output=True, check=True)
        return [os.fsdecode(each) for each in done.stdout.split(b"\0")[:-1]]

    return hidden


def names(seed: int) -> list[str]:
    """Return names of one to four words, as people join them."""
    chance = random.Random(seed)
    words = sorted({word for words in LISTS.values() for word in words if word.isalpha()})
    words += ["key"] * 40 + ["PASS", "x", "my", "id", "7", "2", "libs", "é"]
    found = []
    for _ in range(6000):
        parts = [chance.choice(words) for _ in range(chance.randint(1, 4))]
        style = chance.choice(["_", "-", ".", "", "camel", "upper"])
        if style == "camel":
            found.append("".join(part.capitalize() for part in parts))
        elif style == "upper":
            found.append("_".join(parts).upper())
        else:
            found.append(style.join(parts))
    return [
        *found,
        "A" * 300 + "_TOKEN",
        "TOKEN" + "_A" * 100,
        "DBPassword",
        "aBCd",
        "PWD",
        "OLDPWD",
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_names_are_read_as_redaction_reads_them(hide: Hide, seed: int) -> None:
    pairs = [(name, value) for name in names(seed) for value in VALUES]
    found = hide([f"{name}={value}" for name, value in pairs])
    differing = [
        (pair, shown) for pair, shown in zip(pairs, found, strict=True)
        if (shown != "=".join(pair)) != (pair[1] != "" and keeps(*pair))
    ]  # fmt: skip
    assert differing == []
    assert sum(HIDDEN in shown for shown in found) > 2000


@pytest.mark.parametrize(
    "variable",
    [
        "DATABASE_URL=postgres://me:p4ss@db.example.org:5432/x", "PIP=https://me:a/b@host/simple",
        "INDEX=https://abcdef0123@host/simple", "ALL=-O2 -DAPI_TOKEN=abcdefgh -g",
        'CONFIG={"auths": {"h": {"auth": "bWU6cGFzcw=="}}}', "X=Authorization: Basic bWU6cGFzcw==",
        "K=-----BEGIN RSA PRIVATE KEY-----\nabc", "SETTINGS=user=me password=hunter2 host=h",
        "MAKEFLAGS= -- TOKEN=abcdefgh V=1", "A='secret': 'x y z w'", "no name=me token=abcdefgh",
        "DEPLOY_KEY=" + RANDOM, "X=deploy_key=" + RANDOM,
    ],
)  # fmt: skip
def test_a_secret_in_a_value_hides_it(hide: Hide, variable: str) -> None:
    assert hide([variable]) == [f"{variable.partition('=')[0]}={HIDDEN}"]


ORDINARY = [
    "PATH=/usr/local/bin:/usr/bin:/bin:/opt/token:/x",
    "HOME=/home/me",
    "PWD=/w/x",
    "OLDPWD=/w",
    'CFLAGS=-O2 -g -ffile-prefix-map=/build/x-1.2=. -DUSE_TOKEN=1 -DKEY_FILE=\\"/etc/key\\"',
    "LS_COLORS=rs=0:di=01;34:ln=01;36:*.tar=01;31",
    "MAKEFLAGS= -j8 --jobserver-auth=3,4 -- V=1 O=out",
    "SSH_AUTH_SOCK=/tmp/ssh-XXXX/agent.12",
    "SSH_CONNECTION=10.0.0.1 52000 10.0.0.2 22",
    "KEYS=a b",
    "XDG_SESSION_ID=4",
    "http_proxy=http://proxy:3128/",
    "ORIGIN=ssh://git@host/x",
    "SHLVL=1",
    "_=/usr/bin/make",
    "L=../x ../y",
    "TOKENIZER=a.c b.c",
    "SRCS=token.c secret.c password.c",
    "CC=ccache gcc",
    "EMPTY=",
    "none",
    "U=http://host:8080/a@b",
    "BASH_FUNC_module%%=() {  eval `modulecmd bash $*`\n}",
    "TOKEN=",
    "a=b=c:d::e://",
]


def test_what_makes_get_is_kept(hide: Hide) -> None:
    assert hide(ORDINARY) == ORDINARY


def test_a_value_that_is_not_whole_is_hidden(hide: Hide) -> None:
    shown = hide(["L=" + "x" * 9000, "n" * 9000 + "=x", ""], "cut")
    assert shown[0] == f"L={HIDDEN}"
    assert shown[1].endswith(HIDDEN)
    assert len(shown[1]) < 256


@pytest.mark.parametrize(
    "piece", ["a=", "abc=", "key_id:", "://", "://a:", "PRIVATE ", 'token"', "x"]
)
def test_the_time_grows_with_the_length(hide: Hide, piece: str) -> None:
    def seconds(n: int) -> float:
        began = time.monotonic()
        hide(["V=" + piece * (n // len(piece))] * 20)
        return time.monotonic() - began

    few = max(min(seconds(10_000) for _ in range(3)), 0.02)
    assert seconds(80_000) < 30 * few
