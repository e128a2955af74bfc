# SPDX-License-Identifier: Apache-2.0
"""The kind of a file: source, header, library, tool, temporary, ..

All queries use these rules (docs/dependencies.md, "Classes"). The trace decides first: what was
executed, linked, compiled, made and removed. The name decides last.
"""

from __future__ import annotations

import enum
import os
import re
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Set
from functools import cached_property

from libetrace.depend.path_opens import LOADABLE, PLUGIN, TAKES_ALL, TAKES_ARCHIVES, PathOpens
from libetrace.image.devices import is_device
from libetrace.image.file import Image

from etrace.query.rows.classes import ARCHIVE, EXECUTABLE, PARTIAL, SHARED, Classes
from etrace.query.rows.openers import Openers, is_node_module
from etrace.query.rows.path_names import holds_paths
from etrace.query.rows.project import Project
from etrace.query.rows.temporary import Temporaries
from etrace.spec.database import NONE, file_type
from etrace.spec.suffixes import SHARED_OBJECT, kind_of


class FileKind(enum.StrEnum):
    """The kinds, in the order in which they are shown. Each file has one."""

    SOURCE = "source"
    HEADER = "header"
    OBJECT = "object"
    LIBRARY = "library"
    EXECUTABLE = "executable"
    CONFIG = "config"
    DATA = "data"
    TOOL = "tool"
    TEMPORARY = "temporary"
    DIRECTORY = "directory"
    DEVICE = "device"


#: kinds of the default view; the others belong to the build's tools
USUAL = frozenset(FileKind) - {
    FileKind.TOOL,
    FileKind.TEMPORARY,
    FileKind.DIRECTORY,
    FileKind.DEVICE,
}
#: the default view of modules: all except removed ones
LASTING = frozenset(FileKind) - {FileKind.TEMPORARY}

_OF_MODULES = {
    ARCHIVE: FileKind.LIBRARY,
    EXECUTABLE: FileKind.EXECUTABLE,
    SHARED: FileKind.LIBRARY,
    PARTIAL: FileKind.OBJECT,
}
_CONFIG_NAMES = re.compile(
    r"(?i:(GNU|BSD)?makefile|CMakeLists\.txt|CMakeCache\.txt|meson\.build|meson_options\.txt"
    r"|SCons(truct|cript)|BUILD|WORKSPACE|Kconfig|Kbuild|configure|config\.(status|guess|sub|log)"
    r"|dune|dune-(workspace|project)|cpanfile|libtool|rules|control|changelog|substvars)(\..*)?|\.config|\..*rc"
)
#: programs that take a shared object as an input; after `cas pp`, `linked` names the linkers
_TAKERS = re.compile(
    rb".*/([\w.-]*-)?(ld|ld\.\w+|lld|gold|mold|wild|collect2|ar|ranlib|strip|objcopy|objdump"
    rb"|readelf|nm|patchelf|chrpath|cp|install|mv|tar|cpio|rsync|dpkg-deb|rustc|link)(-[\d.]+)?"
)
#: files other than libraries that ld.so(8) opens before a program begins
_LOADING = frozenset((b"/etc/ld.so.cache", b"/etc/ld.so.preload"))
_LIBRARY = re.compile(rb"^(-l|--library=)")
_KERNEL = re.compile(rb"/(proc|sys)(/|$)|\w\w+:")  # pipe:[1]; not C:
#: files that a tool needs itself: modules of interpreters, plugins, locale, host configuration
_TOOLS_OWN = re.compile(
    rb"/(usr/|usr/local/)?(s?bin|libexec)/|/etc/|/run/(?!(user|shm|media|mnt|build|host)/)"
    rb"|/var/(cache|lib/(dpkg|apt|misc|sss))/"
    rb"|.*/(liblto_plugin|LLVMgold|libnss_)[^/]*$"
)
#: directories of interpreters: what is below them is a tool but for what compilers take
_MODULES = re.compile(
    rb".*/(lib|lib32|lib64|share)/([\w-]+/)?(python[\d.]*|perl([\d.]*|-base)|ruby|tcl[\d.]*|guile"
    rb"|locale|i18n|gconv|terminfo|bfd-plugins|git-core|nss|zoneinfo|erlang|elixir|emacs|xemacs|lua"
    rb"|R/library|octave|php[\d.]*)(/|$)"
)
_TAKEN = frozenset((FileKind.HEADER, FileKind.OBJECT, FileKind.LIBRARY))
#: compiled modules, which interpreters load
_LOADED = re.compile(rb".*(\.so|\.pyc|\.beam|\.elc|\.eln|\.go|\.jar|\.node)")
#: trees of TeX; what its programs need themselves; what documents include
_TEXMF = re.compile(rb".*/\.?texmf[\w.-]*/")
_TEX_TOOLS = re.compile(
    rb".*/(scripts|web2c|texconfig)/.*|.*/(ls-R|texmf\.cnf|texmfcnf\.lua)|.*\.fmt"
)
_TEX_SOURCES = re.compile(rb".*\.(def|cfg|clo|fd|ldf|cls|sty|tex|ltx|dtx|ins|[bcl]bx|bst|lua|ini)")
_SYSTEM = (b"/usr/", b"/lib/", b"/lib32/", b"/lib64/", b"/opt/", b"/nix/store/", b"/gnu/store/")
_SOURCES_OF_SYSTEM = re.compile(rb"/usr/(local/)?src/")


def by_name(path: bytes, *, is_made: bool = False) -> FileKind | None:
    """Return the kind by name, None if the name is unknown. `is_made`: the build wrote the file."""
    name = os.fsdecode(path.rpartition(b"/")[2]).removesuffix(".in")
    if SHARED_OBJECT.search(path):
        return FileKind.LIBRARY
    if name.endswith(".d") and is_made:
        return FileKind.CONFIG  # a dependency file for make; else the language D
    if _CONFIG_NAMES.fullmatch(name):
        return FileKind.CONFIG
    kind = kind_of(name)
    if kind is not None:
        return FileKind(kind)
    return FileKind.HEADER if b"/include/" in path else None  # <vector>


def _of_tex(name: bytes, kind: FileKind | None) -> FileKind:
    """Return the kind of a file in a tree of TeX: a document is made from macros and fonts."""
    if _TEX_TOOLS.fullmatch(name):
        return FileKind.TOOL
    return FileKind.SOURCE if _TEX_SOURCES.fullmatch(name) else kind or FileKind.DATA


def is_of_system(path: bytes) -> bool:
    """Return whether a path is in a directory of installed software."""
    return path.startswith(_SYSTEM) and not _SOURCES_OF_SYSTEM.match(path)


class FileKinds:
    """The kinds of the paths of one image, found on demand and remembered."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._products = Classes(image)
        self._opens = PathOpens(
            image, self._load_kind, self._is_taker, self._is_named, self._taking
        )
        self.temporaries = Temporaries(image, self._opens)
        self._named: tuple[int, Set[bytes]] = (NONE, frozenset())  # by the last execution
        self._known: dict[int, FileKind] = {}  # a library that was not made is LIBRARY here
        self._root = os.fsencode(image.attributes.get("source_root", "")).rstrip(b"/") + b"/"
        self._openers, self._project = Openers(image), Project(image, self._opens)

    def size_of(self, path: int) -> int:
        """Return the size of a file, NONE when it was gone when the trace was parsed."""
        return self.temporaries.size_of(path)

    def of(self, path: int) -> FileKind:
        """Return the kind of a row of `paths`."""
        kind = self._known_kind(path)
        if kind is not FileKind.LIBRARY or self._is_made(path) or self._is_linked(path):
            return kind
        is_loaded = self._opens.is_only_loaded(path)
        return FileKind.TOOL if is_loaded else kind

    def among(self, executions: Iterable[int]) -> Callable[[int], FileKind]:
        """Return what gives the kind of a path to some executions, those on the way to a file.

        Another command may have linked libc.so.6, but `ar` only loads it: it is not part of the
        archive.
        """
        taken = self._opens.taken_by(executions)

        def kind_of(path: int) -> FileKind:
            kind = self._known_kind(path)
            is_loaded = kind is FileKind.LIBRARY and not taken[path] and not self._is_made(path)
            return FileKind.TOOL if is_loaded else kind

        return kind_of

    def _known_kind(self, path: int) -> FileKind:
        if path not in self._known:
            self._known[path] = self._find(path)
        return self._known[path]

    def _find(self, path: int) -> FileKind:
        name, mode = self._image.path_string(path), self.temporaries.mode_of(path)
        type_bits = file_type(mode)
        if _KERNEL.match(name) or is_device(name, mode) or type_bits not in _FILES:
            return FileKind.DEVICE
        if type_bits == stat.S_IFDIR or (not mode and holds_paths(self._image, path)):
            return FileKind.DIRECTORY
        if self._is_temporary(path):
            return FileKind.TEMPORARY
        return self._of_use(path, name) or self._of_place(path, name)

    def _of_use(self, path: int, name: bytes) -> FileKind | None:
        """Return the kind that the uses of a file show; None if they show none."""
        if self._opens.is_program(path) and not SHARED_OBJECT.search(name):
            return FileKind.EXECUTABLE if self._is_made(path) else FileKind.TOOL
        if not self._products.are_known:
            return None
        if self._is_linked(path):
            return _OF_MODULES[self._products.linked_kind[path]]
        is_compiled = self._products.compiled[self._image["paths"]["string"][path]]
        is_source = is_compiled and by_name(name) is not FileKind.HEADER  # compiled to a .gch
        return FileKind.SOURCE if is_source else None

    def _of_place(self, path: int, name: bytes) -> FileKind:
        """Return the kind by name, directory and the way in which programs opened the file."""
        is_made = self._is_made(path)
        shown = self._openers.shown_kind(path, name)
        kind = FileKind(shown) if shown else by_name(name, is_made=is_made)
        if self._openers.is_loaded_module(path, name, is_made=is_made):
            return FileKind.TOOL
        if is_node_module(name):
            return kind or FileKind.DATA
        if _TEXMF.match(name):
            return _of_tex(name, kind)
        is_inside = name.startswith(self._root) and self._root != b"/"
        is_system, is_module = is_of_system(name), _MODULES.match(name)
        if not is_inside and (is_system or is_module):
            is_inside = self._project.holds(name)
        if is_inside:
            return kind or FileKind.DATA
        if _TOOLS_OWN.match(name) and not (is_made and name.startswith(b"/run/")):
            return FileKind.TOOL
        if is_module and (kind not in _TAKEN or _LOADED.fullmatch(name)):
            return FileKind.TOOL
        if not is_system:
            return kind or FileKind.DATA
        is_shared = name.startswith(b"/usr/share/") and kind is FileKind.SOURCE
        return FileKind.TOOL if kind is None or is_shared else kind

    def _is_made(self, path: int) -> bool:
        return self._opens.is_written(path)

    def _is_linked(self, path: int) -> bool:
        return self._products.are_known and path in self._products.linked_kind

    # ---- temporary files ----

    def _is_temporary(self, path: int) -> bool:
        """Return whether the build made a file and removed it.

        When the whole tree was gone before the trace was parsed, only made-up names count.
        """
        if not self.temporaries.is_temporary(path):
            return False
        return any(self.temporaries.parts_of(path)) or self._tree_is_there

    @cached_property
    def _tree_is_there(self) -> bool:
        """Whether any file that the build wrote existed when the trace was parsed."""
        mode_of = self.temporaries.mode_of
        return any(
            stat.S_ISREG(file_type(mode_of(path)))
            and not _KERNEL.match(self._image.path_string(path))
            for path in self._opens.lasting_paths()
        )

    # ---- what the dynamic linker opens ----

    def _taking(self, execution: int) -> int:
        """Return what an execution takes: a compiler archives, one that links all; 0 for others."""
        if self._products.are_known:
            for table, taking in (("linked", TAKES_ALL), ("compilations", TAKES_ARCHIVES)):
                rows = self._image[table]["execution"]
                at = bisect_left(rows, execution)
                if at < len(rows) and rows[at] == execution:
                    return taking
        return 0

    def _is_taker(self, program: int) -> bool:
        return bool(_TAKERS.fullmatch(self._image.path_string(program)))

    def _is_named(self, row: int) -> bool:
        """Return whether a command line names the library of an open, by its path or by -l."""
        opens, image = self._image["opens"], self._image
        execution = opens["execution"][row]
        if execution != self._named[0]:
            arguments = image["arguments"]["string"]
            span = image["executions"].span("argv.start", execution)
            self._named = (execution, _names(image.string(arguments[i]) for i in span[1:]))
        return image.string(opens["original"][row]).rpartition(b"/")[2] in self._named[1]

    def _load_kind(self, path: int) -> int:
        name = self._image.path_string(path)
        if not (SHARED_OBJECT.search(name) or name in _LOADING):
            return 0
        is_own = _TOOLS_OWN.match(name) or _MODULES.match(name)
        return LOADABLE | PLUGIN if is_own else LOADABLE


def _names(words: Iterable[bytes]) -> Set[bytes]:
    """Return the file names that the arguments of a linker may mean."""
    found, before = set(), b""
    for word in words:
        library = word if before in (b"-l", b"--library") else _LIBRARY.sub(b"", word)
        if library != word or before in (b"-l", b"--library"):
            found.add(library[1:] if library.startswith(b":") else b"lib%s.so" % library)
        found.add(word.rpartition(b"/")[2])
        before = word
    return found


#: types other than devices; 0 is a path that was gone
_FILES = frozenset((0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK))
