# SPDX-License-Identifier: Apache-2.0
"""What CMake and Meson write down beside the makefiles that they generate.

Makefiles of CMake include `compiler_depend.make`, which the next make fills from dependency files
before all else. After the first build it is empty, so they are read here where CMake says they are.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from etrace.check.rules import dependency_files
from etrace.check.rules.rule import Rules, absolute

_FILLED_LATER = "/compiler_depend.make"
#: source, object, compiler and dependency file, in DependInfo.cmake
_LISTED = re.compile(r'^  "([^"]*)" "([^"]*)" "[^"]*" "([^"]*\.d)"$', re.MULTILINE)


def learn(rules: Rules) -> None:
    """Add to the rules of CMake's makefiles what the next make would read first."""
    directory = str(rules.directory)
    for makefile in rules.makefiles:
        if not makefile.endswith(_FILLED_LATER):
            continue
        try:
            listed = dependency_files.text_of_file(Path(makefile).with_name("DependInfo.cmake"))
        except OSError:
            continue
        for _, target, file in _LISTED.findall(listed):
            if rule := rules.by_path.get(absolute(directory, target)):
                rule.learned += tuple(dependency_files.inputs(rules.directory / file))


def roots(directory: Path) -> tuple[str, ...]:
    """Return the folder of the sources, as CMake or Meson wrote it into that of a build."""
    return tuple(_roots(directory))


def _roots(directory: Path) -> Iterator[str]:
    text = _text(directory / "CMakeCache.txt")
    if found := re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", text, re.MULTILINE):
        yield os.path.realpath(found[1])
    try:
        info = json.loads(_text(directory / "meson-info" / "meson-info.json"))
        source = info["directories"]["source"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    yield os.path.realpath(str(source))


def _text(path: Path) -> str:
    """Return the text of a file; empty when there is none."""
    try:
        return dependency_files.text_of_file(path)
    except OSError:
        return ""
