# SPDX-License-Identifier: Apache-2.0
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

from libetrace.db.database import Database, Groups

def open_groups(
    file_filter: Groups | None, conditions: Mapping[str, Any]
) -> list[list[tuple[Any, ...]]]: ...
def execution_groups(
    exec_filter: Groups | None, conditions: Mapping[str, Any]
) -> list[list[tuple[Any, ...]]]: ...
def filter_opens(
    columns: Database, groups: Groups, rows: Iterable[int] | None = None
) -> array[int]: ...
def filter_executions(
    columns: Database, groups: Groups, rows: Iterable[int] | None = None
) -> array[int]: ...
def filter_paths(columns: Database, groups: Groups) -> array[int]: ...
