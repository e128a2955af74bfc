# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Conditions of filters, evaluated on many rows at once, and their names.

A condition looks at rows of one domain: paths, texts of paths or directories (rows of `strings`), opens,
or executions. The rows that it is given exist: who calls it checked them. The names are those of the
library of Samsung CAS (docs/libetrace.md) and of its lists.
"""
from libetrace.image.mapped cimport NONE, Span
from libetrace.image.schema cimport ACCESS, EXISTS, TYPE, TYPE_DIR, TYPE_LNK, TYPE_REG
from libetrace.select.matching cimport (
    HAS_PART, IS_UNDER, MATCHES_EXPRESSION, MATCHES_WILDCARD, TextTest, make_matcher,
)
from libetrace.select.path_kinds cimport (
    IS_ARCHIVE, IS_BINARY, IS_COMPILED, IS_COMPILER, IS_EXECUTABLE, IS_LINKED, IS_LINKER, IS_SHARED,
    SOURCE_C, SOURCE_CXX, SOURCE_OTHER, PathKinds, compilation_of, linked_of, path_kinds,
)

from libetrace.core.errors import FilterError
from libetrace.select import windows_paths


cdef class Condition:
    """One condition on rows of one table."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        raise NotImplementedError


cdef class TextCondition(Condition):
    """The text of a path, a directory or a command."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        if self.domain == OF_COMMAND:
            return self.matcher.narrow_commands(columns, rows, n, self.negate, keep)
        return self.matcher.narrow_strings(columns, rows, n, self.negate, keep)


cdef class RootCondition(Condition):
    """Whether a path or directory is in the directory where the build was started."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        root = columns.image.attributes.get("source_root", "")
        return make_matcher(IS_UNDER, root).narrow_strings(columns, rows, n, self.negate, keep)


cdef class NameCondition(Condition):
    """Whether a path is one of some."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef set wanted = set()
        cdef u64 i
        if windows_paths.has_windows_paths(columns.image):
            return narrow_windows_names(self, columns, rows, n, keep)
        for name in self.names:
            wanted.add(columns.find_path(<const char *>name, len(name)))
        for i in range(n):
            if keep[i]:
                keep[i] = (rows[i] in wanted) != self.negate
        return 0


cdef int narrow_windows_names(
    NameCondition condition, Mapped columns, const u32 *rows, u64 n, u8 *keep
) except -1:
    cdef u64 i
    holds = windows_paths.is_one_of(
        [name.decode("utf-8", "surrogateescape") for name in condition.names]
    )
    for i in range(n):
        if keep[i]:
            keep[i] = <bint>holds(columns.decode_path(rows[i])) != condition.negate
    return 0


cdef class KindCondition(Condition):
    """Whether a path is of some kinds (of path_kinds); plain: neither compiled nor linked."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef PathKinds known = path_kinds(columns)
        cdef bint found
        cdef u16 kinds
        cdef u64 i
        for i in range(n):
            kinds = known.kinds[rows[i]]
            found = (
                kinds & self.kinds != 0
                or known.sources[rows[i]] & self.sources != 0
                or (self.plain and not kinds & (IS_COMPILED | IS_LINKED))
            )
            keep[i] &= found != self.negate
        return 0


# Access of all opens of a path together: 0 read, 1 write, 2 both.
cdef int find_access(Mapped columns, u32 path) except -1:
    cdef bint is_read = False
    cdef bint is_write = False
    cdef Span span
    cdef u8 access
    cdef u64 i
    columns.span(&columns.paths_opens_start, path, columns.path_opens_open.n, &span)
    for i in range(span.first, span.last):
        if columns.path_opens_open.at[i] >= columns.n_opens:
            raise columns.broken("path_opens.open", i, columns.path_opens_open.at[i])
        access = columns.opens_mode.at[columns.path_opens_open.at[i]] & ACCESS
        is_read |= access != 1
        is_write |= access != 0
    return 2 if is_read and is_write else 1 if is_write else 0


cdef class GlobalAccessCondition(Condition):
    """Whether all opens of a path together are of an access: 0 read, 1 write, 2 both."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef u64 i
        for i in range(n):
            if keep[i]:
                keep[i] = (find_access(columns, rows[i]) == self.access) != self.negate
        return 0


cdef bint passes_mode(ModeCondition condition, u8 mode) noexcept nogil:
    cdef bint exists = mode & EXISTS != 0
    if condition.test == MODE_ACCESS:
        return min(mode & ACCESS, 2) == condition.access
    if condition.test == MODE_EXISTS:
        return exists
    if condition.test == MODE_GONE:
        return not exists
    if condition.test == MODE_FILE:
        return exists and mode & TYPE == TYPE_REG
    if condition.test == MODE_DIR:
        return exists and mode & TYPE == TYPE_DIR
    return (exists and mode & TYPE == TYPE_LNK) == (condition.test == MODE_SYMLINK)


cdef class ModeCondition(Condition):
    """A condition on the mode of an open: access, existence, type."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef bint verdicts[256]
        cdef u64 i
        for i in range(256):
            verdicts[i] = passes_mode(self, <u8>i) != self.negate
        for i in range(n):
            keep[i] &= verdicts[columns.opens_mode.at[rows[i]]]
        return 0


cdef bint passes_execution(ExecutionCondition condition, Mapped columns, u32 row) except -1:
    cdef s64 parent
    if HAS_PARENT in condition.tests:
        parent = columns.executions_parent.at[row]
        if parent >= <s64>columns.n_executions:
            raise columns.broken("executions.parent", row, parent)
        if parent == NONE:
            return condition.upid == NONE
        return parent >= 0 and columns.executions_upid.at[parent] == condition.upid
    if HAS_COMMAND in condition.tests and columns.executions_binary.at[row] != NONE:
        return True
    if HAS_COMPILATION in condition.tests and compilation_of(columns, row) != NONE:
        return True
    if HAS_MODULE in condition.tests and linked_of(columns, row) != NONE:
        return True
    return (
        HAS_NEITHER in condition.tests
        and columns.executions_binary.at[row] != NONE
        and compilation_of(columns, row) == NONE
        and linked_of(columns, row) == NONE
    )


cdef class ExecutionCondition(Condition):
    """A condition on an execution: its parent's upid, or any of some classes."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef u64 i
        for i in range(n):
            if keep[i]:
                keep[i] = passes_execution(self, columns, rows[i]) != self.negate
        return 0


cdef class ProcessCondition(Condition):
    """Whether an execution is of one of some processes."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef u64 i
        for i in range(n):
            if keep[i]:
                keep[i] = (columns.executions_upid.at[rows[i]] in self.upids) != self.negate
        return 0


# ---- names and values -> conditions ----


def list_names(value):
    names = [value] if isinstance(value, (str, bytes)) else list(value)
    return [n.encode("utf-8", "surrogateescape") if isinstance(n, str) else bytes(n) for n in names]


def is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)


def choose(table, value, what, known):
    try:
        return table[value]
    except (KeyError, TypeError):
        raise FilterError(f"no {what} {value!r}", known) from None


def make_text(Domain domain, TextTest test, value):
    cdef TextCondition out = TextCondition.__new__(TextCondition)
    out.domain = domain
    out.matcher = make_matcher(test, value)
    return out


def make_root(Domain domain, value):
    cdef RootCondition out = RootCondition.__new__(RootCondition)
    out.domain = domain
    return out


def make_name(value):
    cdef NameCondition out = NameCondition.__new__(NameCondition)
    out.domain = OF_PATH
    out.names = list_names(value)
    return out


CLASSES = {
    "compiled": IS_COMPILED,
    "linked": IS_LINKED,
    "linked_static": IS_ARCHIVE,
    "linked_shared": IS_SHARED,
    "linked_exe": IS_EXECUTABLE,
    "plain": 0,
    "compiler": IS_COMPILER,
    "linker": IS_LINKER,
    "binary": IS_BINARY,
}


def make_class(value):
    cdef KindCondition out = KindCondition.__new__(KindCondition)
    out.domain = OF_PATH
    for word in str(value).split("|"):
        if word not in CLASSES:
            raise FilterError(f"no class {word!r}", f"there are: {' '.join(CLASSES)}")
        out.kinds |= <u16>CLASSES[word]
        out.plain = out.plain or word == "plain"
    return out


SOURCES = {
    1: SOURCE_C, 2: SOURCE_CXX, 3: SOURCE_OTHER,
    "c": SOURCE_C, "c++": SOURCE_CXX, "other": SOURCE_OTHER,
}


def make_source(value):
    cdef KindCondition out = KindCondition.__new__(KindCondition)
    out.domain = OF_PATH
    out.sources = choose(SOURCES, value, "source type", "c, c++ and other, or 1, 2 and 3")
    return out


ACCESSES = {"r": 0, "w": 1, "rw": 2, 0: 0, 1: 1, 2: 2}


def make_mode(ModeTest test, value):
    cdef ModeCondition out = ModeCondition.__new__(ModeCondition)
    out.domain = OF_OPEN
    out.test = test
    return out


def make_access(value):
    """0 r, 1 w, 2 rw of the open alone; 3 r, 4 w, 5 rw of all opens of the path together."""
    cdef ModeCondition out
    if is_number(value) and 3 <= value <= 5:
        return make_global_access(value - 3)
    out = make_mode(MODE_ACCESS, True)
    out.access = choose(ACCESSES, value, "access", "r, w and rw, or 0 to 5")
    return out


def make_global_access(value):
    cdef GlobalAccessCondition out = GlobalAccessCondition.__new__(GlobalAccessCondition)
    out.domain = OF_PATH
    out.access = choose(ACCESSES, value, "access", "r, w and rw, or 0 to 2")
    return out


def make_execution_test(tests, s64 upid=0):
    cdef ExecutionCondition out = ExecutionCondition.__new__(ExecutionCondition)
    out.domain = OF_EXECUTION
    out.tests = set(tests)
    out.upid = upid
    return out


def make_parent(value):
    if not is_number(value):
        raise FilterError(f"expected a upid, not {value!r}")
    if not -1 <= value < 1 << 63:
        raise FilterError(f"{value} is not a upid: upids have 63 bits, and -1 means none")
    return make_execution_test({HAS_PARENT}, value)


EXECUTION_CLASSES = {
    "compiler": HAS_COMPILATION,
    "linker": HAS_MODULE,
    "command": HAS_NEITHER,
}


def make_execution_class(value):
    words = str(value).split("|")
    for word in words:
        if word not in EXECUTION_CLASSES:
            raise FilterError(f"no class {word!r}", f"there are: {' '.join(EXECUTION_CLASSES)}")
    return make_execution_test({EXECUTION_CLASSES[word] for word in words})


def make_process(value):
    cdef ProcessCondition out = ProcessCondition.__new__(ProcessCondition)
    out.domain = OF_EXECUTION
    out.upids = {value} if is_number(value) else set(value)
    return out


def flag(make, *args):
    """Return a maker that takes any value: a flag is a condition by being there."""
    return lambda _value: make(*args)


def text_makers(Domain domain, prefix):
    """Return the three tests of a text under the names of the library and of the lists."""
    makers = {
        "has_str": lambda value: make_text(domain, HAS_PART, value),
        "wc": lambda value: make_text(domain, MATCHES_WILDCARD, value),
        "re": lambda value: make_text(domain, MATCHES_EXPRESSION, value),
    }
    makers |= {
        "has_string": makers["has_str"],
        "contains_path": makers["has_str"],
        "matches_wc": makers["wc"],
        "matches_re": makers["re"],
    }
    return {prefix + name: make for name, make in makers.items()}


def negated(make):
    def make_negated(value):
        cdef Condition out = make(value)
        out.negate = True
        return out
    return make_negated


def root_makers(Domain domain, prefix):
    at = flag(make_root, domain, True)
    return {prefix + "at_source_root": at, prefix + "not_at_source_root": negated(at)}


#: name of a condition on opens -> its maker
OPEN_CONDITIONS = {
    "path": make_name,
    "has_path": lambda value: make_text(OF_PATH_TEXT, HAS_PART, value),
    **text_makers(OF_PATH_TEXT, ""),
    **root_makers(OF_PATH_TEXT, ""),
    **{name: flag(make_class, name) for name in CLASSES},
    "is_class": make_class,
    "source_type": make_source,
    "has_access": make_access,
    "global_access": make_global_access,
    "exists": flag(make_mode, MODE_EXISTS, True),
    "file_exists": flag(make_mode, MODE_FILE, True),
    "file_not_exists": flag(make_mode, MODE_GONE, True),
    "dir_exists": flag(make_mode, MODE_DIR, True),
    "symlink": flag(make_mode, MODE_SYMLINK, True),
    "no_symlink": flag(make_mode, MODE_NO_SYMLINK, True),
}
#: name of a condition on executions -> its maker
EXECUTION_CONDITIONS = {
    "bins": make_name,
    "pids": make_process,
    **text_makers(OF_PATH_TEXT, "bin_"),
    **text_makers(OF_CWD_TEXT, "cwd_"),
    **text_makers(OF_COMMAND, "cmd_"),
    **root_makers(OF_PATH_TEXT, "bin_"),
    **root_makers(OF_CWD_TEXT, "cwd_"),
    "has_ppid": make_parent,
    "has_command": flag(make_execution_test, {HAS_COMMAND}),
    "has_comp_info": flag(make_execution_test, {HAS_COMPILATION}),
    "has_linked_file": flag(make_execution_test, {HAS_MODULE}),
    "is_class": make_execution_class,
}
