# SPDX-License-Identifier: Apache-2.0
"""What depends on a file; linked modules among dependencies."""

from __future__ import annotations

from pathlib import Path

import databases
import pytest
from libetrace.depend import configuration
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.cli.main import cas
from etrace.query.compilations import reverse_map
from etrace.query.dependencies import moddeps, rdeps, revmoddeps, walk


@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        Rules(is_ordered=False),
        Rules(pipes=True),
        Rules(all_programs=True),
        Rules(exclude_files=(b"*/none",)),
        Rules(exclude_commands=(b"none",)),
    ],
)
def test_no_option_takes_the_configuration_of_a_module_away(image: Image, rules: Rules) -> None:
    config = configuration.load(image.path.parent)
    variants = config._replace(
        exclude_command_variants={"*/hello": ("ar *",)},
        additional_module_exclude_pattern_variants={"*/libutil.a": ("*/util.o",)},
    )
    d = Dependencies(image, variants)
    hello, archive = (image.find_path(b"/src/" + name) for name in (b"hello", b"libutil.a"))
    assert rdeps(d, [b"util.c"], rules) == []
    assert rdeps(d, [b"util.o"], rules) == [archive]
    assert rdeps(d, [b"main.c"], rules) == [hello]
    assert revmoddeps(d, [b"libutil.a"], rules) == moddeps_of(d, archive, hello, rules)
    assert reverse_map(d, [image.find_path(b"/src/util.o")], rules) == {
        "/src/util.o": ["/src/libutil.a"]
    }
    for module in (hello, archive):
        own = walk(d, [image.path_string(module)], rules).paths
        for path in range(image["paths"].n_rows):
            users = rdeps(d, [image.path_string(path)], rules, all_files=True)
            assert (path in own) == (module in users)


def moddeps_of(d: Dependencies, module: int, user: int, rules: Rules) -> list[int]:
    """Return the user if it depends on the module."""
    return [user] if module in moddeps(d, [d.image.path_string(user)], rules) else []


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.write_database(tmp_path_factory.mktemp("build"))


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("lm moddeps", ["/src/libutil.a"]),
        ("lm revmoddeps", ["/src/hello"]),
        ("rdeps /src/util.c /src/libutil.a", ["/src/hello", "/src/libutil.a"]),
        ("rdeps /src/libutil.a", ["/src/hello"]),
        ("deps /src/hello --filter [path=*.h,type=wc]", ["/src/util.h"]),
        ("rdeps /src/util.h --filter [class=linked_exe]", ["/src/hello"]),
    ],
)
def test_several_files_give_what_each_of_them_gives(
    build: Path, command: str, wanted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cas(["--dbdir", str(build), *command.split()]) == 0
    assert capsys.readouterr().out.splitlines() == wanted
