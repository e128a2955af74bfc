# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import (
    Any,
    Generic,
    Literal,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
)

from typing_extensions import Unpack

from libetrace.core.texts import PathText
from libetrace.db.execution import Execution
from libetrace.db.filemap import FileMap
from libetrace.db.open_file import Open
from libetrace.depend.dependencies import Dependencies
from libetrace.depend.graph import Graph
from libetrace.depend.makers import FileGraph
from libetrace.image.file import Image, Table

_T = TypeVar("_T")
Condition: TypeAlias = tuple[Any, ...]
Groups: TypeAlias = Sequence[Sequence[Condition]]
Process: TypeAlias = tuple[int] | tuple[int, int]

__version__: str

class OpenConditions(TypedDict, total=False):
    path: PathText | Sequence[PathText] | None
    has_path: str | bytes | None
    wc: str | bytes | None
    re: str | bytes | None
    compiled: bool | None
    linked: bool | None
    linked_static: bool | None
    linked_shared: bool | None
    linked_exe: bool | None
    plain: bool | None
    compiler: bool | None
    linker: bool | None
    binary: bool | None
    symlink: bool | None
    no_symlink: bool | None
    exists: bool | None
    file_exists: bool | None
    file_not_exists: bool | None
    dir_exists: bool | None
    has_access: str | int | None
    global_access: str | int | None
    negate: bool | None
    at_source_root: bool | None
    not_at_source_root: bool | None
    source_type: str | int | None

class ExecutionConditions(TypedDict, total=False):
    bins: PathText | Sequence[PathText] | None
    pids: int | Iterable[int] | None
    cwd_has_str: str | bytes | None
    cwd_wc: str | bytes | None
    cwd_re: str | bytes | None
    cmd_has_str: str | bytes | None
    cmd_wc: str | bytes | None
    cmd_re: str | bytes | None
    bin_has_str: str | bytes | None
    bin_wc: str | bytes | None
    bin_re: str | bytes | None
    has_ppid: int | None
    has_command: bool | None
    has_comp_info: bool | None
    has_linked_file: bool | None
    negate: bool | None
    bin_at_source_root: bool | None
    bin_not_at_source_root: bool | None
    cwd_at_source_root: bool | None
    cwd_not_at_source_root: bool | None

@final
class Rows(Generic[_T]):
    def __len__(self) -> int: ...
    def __length_hint__(self) -> int: ...
    def __iter__(self) -> Iterator[_T]: ...
    def __next__(self) -> _T: ...

class Database:
    image: Image
    def load(
        self,
        cache_filename: str | os.PathLike[str],
        debug: bool = False,
        quiet: bool = True,
        mp_safe: bool = True,
        no_map_memory: bool = False,
    ) -> Literal[True]: ...
    @classmethod
    def from_image(cls, image: Image) -> Self: ...
    @property
    def tables(self) -> Mapping[str, Table]: ...
    @property
    def source_root(self) -> str: ...
    @property
    def dbversion(self) -> str: ...
    @property
    def filemap(self) -> FileMap: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Rows[Execution]: ...
    def iter(self) -> Rows[Execution]: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Execution: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[Execution]: ...
    @overload
    def __getitem__(self, key: Process | PathText | list[Any], /) -> list[Execution]: ...
    def rows_of_process(self, pid: int, index: int | None = None) -> range: ...
    def rows_of_binary(self, path: PathText) -> list[int]: ...
    def pids(self) -> list[int]: ...
    def binary_paths(self) -> list[str]: ...
    @property
    def threads(self) -> list[int]: ...
    @property
    def thread_count(self) -> int: ...
    def pcp_list(self) -> list[str]: ...
    def precompute_command_patterns(
        self, patterns: Iterable[str | bytes]
    ) -> dict[tuple[int, int], bytes] | None: ...
    def filtered_execs(
        self, exec_filter: Groups | None = None, **conditions: Unpack[ExecutionConditions]
    ) -> list[Execution]: ...
    def filtered_execs_iter(
        self, exec_filter: Groups | None = None, **conditions: Unpack[ExecutionConditions]
    ) -> Rows[Execution]: ...
    def opens(self) -> list[Open]: ...
    def opens_iter(self) -> Rows[Open]: ...
    def opens_paths(self) -> list[str]: ...
    def filtered_opens(
        self, file_filter: Groups | None = None, **conditions: Unpack[OpenConditions]
    ) -> list[Open]: ...
    def filtered_opens_iter(
        self, file_filter: Groups | None = None, **conditions: Unpack[OpenConditions]
    ) -> Rows[Open]: ...
    def filtered_paths(
        self, file_filter: Groups | None = None, **conditions: Unpack[OpenConditions]
    ) -> list[str]: ...
    def filtered_paths_iter(
        self, file_filter: Groups | None = None, **conditions: Unpack[OpenConditions]
    ) -> Rows[str]: ...
    def path_exists(self, path: PathText) -> bool: ...
    def path_read(self, path: PathText) -> bool: ...
    def path_write(self, path: PathText) -> bool: ...
    def path_regular(self, path: PathText) -> bool: ...
    def path_symlinked(self, path: PathText) -> bool: ...
    def symlink_paths(self, path: PathText) -> list[str]: ...
    def linked_modules(self) -> list[tuple[Open, int]]: ...
    def linked_module_paths(self) -> list[tuple[str, int]]: ...
    @property
    def dependencies(self) -> Dependencies: ...
    def graph(self, wrapped: bool = False) -> Graph: ...
    @overload
    def fdeps(
        self,
        file_path: PathText | Sequence[PathText],
        debug: bool = False,
        dry_run: bool = False,
        direct: bool = False,
        debug_fd: bool = False,
        negate_pattern: bool = False,
        dep_graph: Literal[False] = False,
        wrap_deps: bool = False,
        use_pipes: bool | None = None,
        recursive: bool = True,
        timeout: int = 0,
        exclude_files: Sequence[PathText] = (),
        exclude_patterns: Sequence[str | bytes] = (),
        exclude_commands: Sequence[str | bytes] = (),
        exclude_commands_index: Iterable[int] = (),
        all_modules: Sequence[PathText] | None = None,
        ordered: bool = True,
    ) -> tuple[list[int], list[str], list[Open]]: ...
    @overload
    def fdeps(
        self,
        file_path: PathText | Sequence[PathText],
        debug: bool = False,
        dry_run: bool = False,
        direct: bool = False,
        debug_fd: bool = False,
        negate_pattern: bool = False,
        *,
        dep_graph: Literal[True],
        wrap_deps: bool = False,
        use_pipes: bool | None = None,
        recursive: bool = True,
        timeout: int = 0,
        exclude_files: Sequence[PathText] = (),
        exclude_patterns: Sequence[str | bytes] = (),
        exclude_commands: Sequence[str | bytes] = (),
        exclude_commands_index: Iterable[int] = (),
        all_modules: Sequence[PathText] | None = None,
        ordered: bool = True,
    ) -> tuple[list[int], list[str], list[Open], FileGraph]: ...
    def mdeps(
        self, module_path: PathText | Sequence[PathText], direct: bool = False
    ) -> list[Open]: ...
    def mdeps_count(
        self, module_path: PathText | Sequence[PathText], direct: bool = False
    ) -> int: ...
    def rdeps(
        self, file_path: PathText | Sequence[PathText], recursive: bool = False
    ) -> set[str]: ...
