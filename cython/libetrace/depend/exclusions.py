# SPDX-License-Identifier: Apache-2.0
"""Configuration -> the exclusions for one file.

`dependency_exclude_patterns` and `additional_module_exclude_patterns` hold for every file;
of the keys whose values go by path wildcards all count that match the file, as Python's fnmatch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from libetrace.depend.configuration import Config


class Exclusions(NamedTuple):
    """Patterns of files and commands; `pipes` is None where the configuration does not say."""

    files: tuple[bytes, ...] = ()
    commands: tuple[bytes, ...] = ()
    pipes: bool | None = None


def exclusions_of(config: Config, path: bytes) -> Exclusions:
    """Return the exclusions of the configuration for the dependencies of `path`."""
    text = os.fsdecode(path)
    general = config.dependency_exclude_patterns + config.additional_module_exclude_patterns
    files = (*general, *_chosen(config.additional_module_exclude_pattern_variants, text))
    commands = _chosen(config.exclude_command_variants, text)
    pipes = None
    if _matches(config.module_dependencies_with_pipes, text):
        pipes = True
    if _matches(config.module_dependencies_exclude_with_pipes, text):
        pipes = False
    return Exclusions(_encoded(files), _encoded(commands), pipes)


def _matches(wildcards: Iterable[str], path: str) -> bool:
    return any(fnmatchcase(path, wildcard) for wildcard in wildcards)


def _chosen(variants: Mapping[str, tuple[str, ...]], path: str) -> list[str]:
    return [p for wildcard, own in variants.items() if fnmatchcase(path, wildcard) for p in own]


def _encoded(patterns: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(os.fsencode(pattern) for pattern in patterns))
