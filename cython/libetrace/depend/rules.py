# SPDX-License-Identifier: Apache-2.0
"""The user's rules for a walk over dependencies: its options, and where it stops."""

from __future__ import annotations

from typing import NamedTuple


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
    exclude_paths: tuple[bytes, ...] = ()  #: as they are
    command_numbers: tuple[int, ...] = ()  #: of precomputed patterns: rows of `patterns`
    modules: tuple[bytes, ...] | None = None
