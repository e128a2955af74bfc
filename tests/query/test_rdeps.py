# SPDX-License-Identifier: Apache-2.0
"""What depends on files, when the configuration differs by module."""

from __future__ import annotations

import pytest
from libetrace.depend import configuration
from libetrace.depend.dependencies import Dependencies
from libetrace.depend.rules import Rules
from libetrace.image.file import Image

from etrace.query.compilation_map import reverse_map
from etrace.query.deps import walk
from etrace.query.moddeps import moddeps
from etrace.query.rdeps import rdeps
from etrace.query.revmoddeps import revmoddeps


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
