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

from etrace.rules import dependency_files
from etrace.rules.rule import Rules, absolute

#: of what CMake lists of a target, of its cache, and of what Meson says of a build
MAX_LISTED, MAX_CACHE, MAX_INFO = 64 << 20, 16 << 20, 1 << 20
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
            listed = dependency_files.text_of_file(
                Path(makefile).with_name("DependInfo.cmake"), MAX_LISTED
            )
        except OSError:
            continue
        for _, target, file in _LISTED.findall(listed):
            if rule := rules.by_path.get(absolute(directory, target)):
                rule.learned += tuple(dependency_files.inputs(rules.directory / file))


def roots(directory: Path) -> tuple[str, ...]:
    """Return the folder of the sources, as CMake or Meson wrote it into that of a build."""
    return tuple(_roots(directory))


def _roots(directory: Path) -> Iterator[str]:
    text = _text(directory / "CMakeCache.txt", MAX_CACHE)
    if found := re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", text, re.MULTILINE):
        yield absolute(str(directory), found[1])
    if source := _source_of_meson(_text(directory / "meson-info" / "meson-info.json", MAX_INFO)):
        yield absolute(str(directory), source)


def _source_of_meson(text: str) -> str:
    """Return the folder of the sources; empty when the text does not say it as Meson does."""
    try:
        info = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    folders = info.get("directories") if isinstance(info, dict) else None
    source = folders.get("source") if isinstance(folders, dict) else None
    if not isinstance(source, str) or not source.startswith("/") or "\0" in source:
        return ""
    return source if _is_name(source) else ""


def _is_name(text: str) -> bool:
    """Whether a file may be called so: JSON may have halves of characters."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _text(path: Path, max_bytes: int) -> str:
    """Return the text of a file; empty when there is none."""
    try:
        return dependency_files.text_of_file(path, max_bytes)
    except OSError:
        return ""
