# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Names and values of conditions, as filters give them -> conditions.

The names are those of the library of Samsung CAS (docs/libetrace.md) and of its lists.
"""
from libetrace.select.conditions cimport (
    HAS_COMMAND, HAS_COMPILATION, HAS_MODULE, HAS_NEITHER, HAS_PARENT, MODE_ACCESS, MODE_DIR,
    MODE_EXISTS, MODE_FILE, MODE_GONE, MODE_NO_SYMLINK, MODE_SYMLINK, OF_COMMAND, OF_CWD_TEXT,
    OF_EXECUTION, OF_OPEN, OF_PATH, OF_PATH_TEXT, Condition, Domain, ExecutionCondition,
    GlobalAccessCondition, KindCondition, ModeCondition, ModeTest, NameCondition, ProcessCondition,
    RootCondition, TextCondition,
)
from libetrace.select.matching cimport (
    HAS_PART, MATCHES_EXPRESSION, MATCHES_WILDCARD, TextTest, make_matcher,
)
from libetrace.select.path_kinds cimport (
    IS_ARCHIVE, IS_BINARY, IS_COMPILED, IS_COMPILER, IS_EXECUTABLE, IS_LINKED, IS_LINKER, IS_SHARED,
    SOURCE_C, SOURCE_CXX, SOURCE_OTHER,
)
from libetrace.core.types cimport s64, u16

from libetrace.core.errors import FilterError


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
