# SPDX-License-Identifier: Apache-2.0
"""What command lines and environments show in a document."""

from __future__ import annotations

import shlex

import pytest

from etrace.redaction.commands import shown_arguments, shown_variables


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("gcc -DAPI_TOKEN=x -O2 -c a.c", "gcc -DAPI_TOKEN=[hidden] -O2 -c a.c"),
        ("t --password x --verbose", "t --password [hidden] --verbose"),
        ("t --password=x a", "t --password=[hidden] a"),
        ("env DB_PASSWORD=x make", "env DB_PASSWORD=[hidden] make"),
        ("git clone https://u:x@h/p", "git clone https://[hidden]@h/p"),
        ("curl -u me:x https://h", "curl -u [hidden] https://h"),
        ("curl -H 'Authorization: Bearer x'", "curl -H 'Authorization: [hidden]'"),
        ("sh -c 'a; t --password x; b'", "sh -c 'a; t --password [hidden]; b'"),
        ("t ghp_0123456789012345678901234567890123456", "t [hidden]"),
        ("sort -u file", "sort -u file"),
        ("curl -ume:x https://h", "curl -u[hidden] https://h"),
        ("git clone https://u:p@x@h/p", "git clone https://[hidden]@h/p"),
        ("keytool -storepass x1 -keypass y1", "keytool -storepass [hidden] -keypass [hidden]"),
        ("openssl -passin pass:x", "openssl -passin [hidden]"),
        ("t --password -x", "t --password [hidden]"),
        ("t 'https://h/?a=1&access_token=x&b=2'", "t 'https://h/?a=1&access_token=[hidden]&b=2'"),
        ('t \'{"password":"x"}\'', 't \'{"password":"[hidden]"}\''),
        ("msbuild /p:Password=x", "msbuild /p:Password=[hidden]"),
        ("gcc -DAUTHOR=me -DKEYBOARD=1 -DPATH_SEPARATOR=x -DCOMPASS=1",) * 2,
        ("sh -c 'cc -c a.c && echo done'",) * 2,
        ("ar rcs token.a key.o",) * 2,
    ],
)
def test_a_command_shows_no_secret(command: str, shown: str) -> None:
    assert list(shown_arguments(shlex.split(command))) == shlex.split(shown)


def test_variables_are_those_that_were_asked_for() -> None:
    variables = ["B=1", "A_KEY=x", "MY_TOKEN=x", "A=https://u:p@h", "C=2"]
    assert list(shown_variables(variables, ["A*", "MY_TOKEN", "B"])) == [
        ("A", "https://[hidden]@h"), ("A_KEY", "x"), ("B", "1"), ("MY_TOKEN", "x"),
    ]  # fmt: skip
    assert list(shown_variables(["SIGNING_KEY=x", "TOKEN=y"], ["*"])) == [
        ("SIGNING_KEY", "[hidden]"), ("TOKEN", "[hidden]"),
    ]  # fmt: skip
    assert list(shown_variables(variables, [])) == []
