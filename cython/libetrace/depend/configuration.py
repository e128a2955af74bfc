# SPDX-License-Identifier: Apache-2.0
"""What the user chooses: the rules of a walk over dependencies, and `.bas_config` -> Config.

The configuration says which binaries are what, and what dependencies leave out. `exclusions_of`
gives that for one file: of the keys whose values go by path wildcards all count that match the
file, as Python's fnmatch; `dependency_exclude_patterns` and
`additional_module_exclude_patterns` always hold.

JSON with the keys of Samsung CAS, beside the database, else the shipped `default.bas_config`.
A key that the file lacks has its shipped value; an empty list matches nothing. Meaning of the
keys: docs/postprocess.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from libetrace.core.errors import Error, PatternError
from libetrace.core.regular_file import read_json
from libetrace.select.commands import check_glob

NAME = ".bas_config"
#: of the file; the shipped one has two thousand
MAX_BYTES = 1 << 20
DEFAULT = Path(__file__).with_name("default.bas_config")
Strings = tuple[str, ...]
Variants = Mapping[str, Strings]


class Rules(NamedTuple):
    """How a walk goes; docs/dependencies.md says what each rule means.

    `pipes` is None where the configuration of the file decides, else as if it said so. Globs are
    those of fnmatch(3) without flags; `negate` turns `exclude_files`, `exclude_commands` and
    `command_numbers` round. `modules` are the paths at which a direct walk stops, None for all
    linked modules.
    """

    is_direct: bool = False
    is_ordered: bool = True
    pipes: bool | None = None
    is_wrapped: bool = False
    all_programs: bool = False
    exclude_files: tuple[bytes, ...] = ()
    exclude_commands: tuple[bytes, ...] = ()
    negate: bool = False
    exclude_paths: tuple[bytes, ...] = ()  #: unchanged
    command_numbers: tuple[int, ...] = ()  #: of precomputed patterns: rows of `patterns`
    modules: tuple[bytes, ...] | None = None


class Config(NamedTuple):
    """Patterns are globs as fnmatch(3) reads them without flags; variants map path globs to them.

    `unknown` are the keys of the file that mean nothing.
    """

    path: Path
    unknown: Strings
    ld_spec: Strings
    ar_spec: Strings
    gcc_spec: Strings
    gpp_spec: Strings
    clang_spec: Strings
    clangpp_spec: Strings
    armcc_spec: Strings
    rbm_wrapping_binaries: Strings
    dependency_exclude_patterns: Strings
    additional_module_exclude_patterns: Strings
    additional_module_exclude_pattern_variants: Variants
    exclude_command_variants: Variants
    module_dependencies_with_pipes: Strings
    module_dependencies_exclude_with_pipes: Strings

    @property
    def is_default(self) -> bool:
        """Whether the database has no file of its own."""
        return self.path == DEFAULT

    @property
    def command_patterns(self) -> Strings:
        """All patterns of `exclude_command_variants`, each once, in order of first appearance."""
        variants = self.exclude_command_variants.values()
        return tuple(dict.fromkeys(pattern for patterns in variants for pattern in patterns))


def _is_text(item: Any) -> bool:
    """Return whether a path or command line could hold it: JSON knows NUL and half a surrogate."""
    try:
        return isinstance(item, str) and b"\0" not in os.fsencode(item)
    except UnicodeEncodeError:
        return False


def _strings(value: Any) -> Strings:
    if not isinstance(value, list) or not all(map(_is_text, value)):
        raise TypeError("a list of strings")
    for pattern in value:
        check_glob(os.fsencode(pattern))
    return tuple(value)


def _variants(value: Any) -> Variants:
    if not isinstance(value, dict):
        raise TypeError("an object of lists of strings")
    try:
        for wildcard in value:
            check_glob(os.fsencode(wildcard))
        return {key: _strings(patterns) for key, patterns in value.items()}
    except TypeError as error:
        raise TypeError("an object of lists of strings") from error


KEYS: dict[str, Callable[[Any], Any]] = {
    name: _variants if "variants" in name else _strings
    for name in Config._fields
    if name not in ("path", "unknown")
}
#: keys of Samsung CAS that it does not use, and neither does etrace
UNUSED = ("clang_tailopts", "integrated_clang_compilers")


def _read(path: Path) -> dict[str, Any]:
    hint = f"correct it, or copy the shipped one: {DEFAULT}"
    try:
        raw = read_json(path, MAX_BYTES)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}", hint) from error
    except ValueError as error:
        raise Error(f"{path}: not JSON: {error}", hint) from error
    if not isinstance(raw, dict):
        raise Error(f"{path}: not an object", hint)
    return raw


def _value(path: Path, key: str, raw: Any) -> Any:
    try:
        return KEYS[key](raw)
    except PatternError as error:
        raise Error(f"{path}: {key}: {error.message}", error.hint) from error
    except TypeError as error:
        raise Error(f"{path}: {key} is not {error}", f"it says {json.dumps(raw)[:60]}") from error


_kept: dict[Path, Config] = {}


def keep(directory: Path) -> None:
    """Load a configuration for this process and those that it forks, which may open no files."""
    _kept[directory] = load(directory)


def load(directory: Path) -> Config:
    """Return the configuration of a database's directory, else the shipped one.

    Error names the file and the key that is wrong.
    """
    if directory in _kept:
        return _kept[directory]
    own = directory / NAME
    path = own if own.exists() else DEFAULT
    raw = _read(path)
    shipped = raw if path == DEFAULT else _read(DEFAULT)
    unknown = tuple(key for key in raw if key not in KEYS and key not in UNUSED)
    values = {key: _value(path, key, raw.get(key, shipped[key])) for key in KEYS}
    return Config(path, unknown, **values)


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
