# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Filters over opens and executions, evaluated on columns.

A filter is an or-list of and-lists of conditions, `[[condition, ..], ..]`; a condition is a tuple
`(name, value)` or `(name, value, negate)`, or `("not", [condition, ..])`: not all of these. The names
are those of libetrace.select.conditions. What depends on the path alone is evaluated
once for each distinct path, what depends on the working directory once for each distinct directory.

    rows = filter_opens(database, [[("wc", "*.c"), ("has_access", 0)]])
    rows = filter_executions(database, [[("bin_wc", "*/gcc"), ("cmd_has_str", "-O2", True)]])

An empty and-list passes everything, an empty or-list filters nothing. The result is an array of rows,
ascending; `rows` limits the question to some. FilterError names a bad condition.
"""
from array import array

from cpython cimport array as c_array
from libc.string cimport memset

from libetrace.select.conditions cimport (
    OF_CWD_TEXT, OF_EXECUTION, OF_OPEN, OF_PATH, OF_PATH_TEXT, Condition, Domain,
)
from libetrace.image.mapped cimport NONE, Mapped
from libetrace.core.types cimport u8, u32, u64

from libetrace.select.conditions import EXECUTION_CONDITIONS, OPEN_CONDITIONS
from libetrace.core.errors import FilterError

cdef c_array.array ROWS = array("I")


def negate_group(makers, items):
    cdef NegatedGroup out = NegatedGroup.__new__(NegatedGroup)
    out.domain = OF_OPEN if makers is OPEN_CONDITIONS else OF_EXECUTION
    out.group = [make_condition(makers, item) for item in items]
    return out


def make_condition(makers, item):
    """Return the condition of a tuple (name, value) or (name, value, negate)."""
    cdef Condition out
    if not isinstance(item, (tuple, list)) or not 1 <= len(item) <= 3:
        raise FilterError(f"{item!r} is not a condition", '(name, value) or (name, value, negate)')
    name, value, negate = (*item, True, False)[:3] if len(item) == 1 else (*item, False)[:3]
    if name == "not":
        out = negate_group(makers, value)
    elif name not in makers:
        raise FilterError(f"no condition {name!r}", f"there are: {' '.join(sorted(makers))}")
    else:
        out = makers[name](value)
    if negate:
        out.negate = not out.negate
    return out


# ---- keywords -> or-list of and-lists ----

def join_groups(filter, conditions, makers):
    """Return the or-list that a filter and keywords mean together.

    Keywords that are None or False say nothing; `negate` turns the keywords round, all together.
    """
    groups = [list(group) for group in filter or [[]]]
    negate = conditions.pop("negate", None)
    items = []
    for name, value in conditions.items():
        if name not in makers:
            raise TypeError(f"unexpected keyword argument {name!r}")
        if value is not None and value is not False:
            items.append((name, value))
    if not items:
        return groups
    if not negate:
        return [group + items for group in groups]
    return [[*group, (name, value, True)] for group in groups for name, value in items]


def open_groups(file_filter, conditions):
    """Return the or-list that the arguments of `filtered_opens` mean."""
    return join_groups(file_filter, dict(conditions), OPEN_CONDITIONS)


def execution_groups(exec_filter, conditions):
    """Return the or-list that the arguments of `filtered_execs` mean."""
    return join_groups(exec_filter, dict(conditions), EXECUTION_CONDITIONS)


# ---- evaluation ----

cdef class NegatedGroup(Condition):
    """An and-list that must not hold."""
    cdef list group

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef bytearray memory = bytearray(n)
        cdef u8 *holds = <u8 *><char *>memory
        cdef u64 i
        narrow_group(columns, self.group, self.domain, rows, n, holds)
        for i in range(n):
            keep[i] &= (not holds[i]) != self.negate
        return 0


cdef c_array.array new_rows(u64 n):
    return c_array.clone(ROWS, n, zero=False)


cdef c_array.array row_array(object rows, u64 n):
    cdef c_array.array out
    cdef u64 first
    cdef u64 i
    if rows is None:
        rows = range(n)
    if isinstance(rows, range) and rows.step == 1 and rows.start >= 0:
        if len(rows) and rows.stop > n:
            raise IndexError(f"row {rows.stop - 1} of {n}")
        first = rows.start
        out = new_rows(len(rows))
        for i in range(<u64>len(out)):
            out.data.as_uints[i] = <u32>(first + i)
    else:
        out = array("I", rows)
    for i in range(<u64>len(out)):
        if out.data.as_uints[i] >= n:
            raise IndexError(f"row {out.data.as_uints[i]} of {n}")
    return out


# 1 for each distinct number of `column` at `rows`: (flags by number, the numbers).
cdef c_array.array distinct(const u32 *numbers, u64 n, u8 *flags, u64 n_flags):
    cdef c_array.array out
    cdef u64 i
    cdef u64 n_out = 0
    for i in range(n):
        if numbers[i] < n_flags:
            flags[numbers[i]] = 1
    for i in range(n_flags):
        n_out += flags[i]
    out = new_rows(n_out)
    n_out = 0
    for i in range(n_flags):
        if flags[i]:
            out.data.as_uints[n_out] = <u32>i
            n_out += 1
    return out


# Lowers keep[i] where the number of row i in `column`, a path or a string, fails a condition that
# depends on it alone; NONE passes what is negated only.
cdef int narrow_by_number(
    Mapped columns, list conditions, const u32 *column, const u32 *rows, u64 n, bint is_path,
    u8 *keep
) except -1:
    cdef u64 n_flags = columns.n_paths if is_path else columns.n_strings
    cdef c_array.array numbers
    cdef bytearray memory
    cdef u8 *flags
    if not conditions:
        return 0
    memory = bytearray(n_flags)
    flags = <u8 *><char *>memory
    numbers = gather(column, rows, n)
    narrow_distinct(columns, conditions, numbers.data.as_uints, n, flags, n_flags, is_path)
    spread(columns, conditions, numbers.data.as_uints, n, flags, n_flags, keep)
    return 0


# Lowers keep[i] by the flag of its number.
cdef int spread(
    Mapped columns, list conditions, const u32 *numbers, u64 n, const u8 *flags, u64 n_flags,
    u8 *keep
) except -1:
    cdef bint absent = True
    cdef Condition condition
    cdef u64 i
    for condition in conditions:
        absent = absent and condition.negate
    for i in range(n):
        if numbers[i] < n_flags:
            keep[i] &= flags[numbers[i]]
        elif numbers[i] == <u32>NONE:
            keep[i] &= absent
        else:
            raise columns.broken("path or string", i, numbers[i])
    return 0


# flags[x] = whether all conditions hold for x, for each x among the numbers.
cdef int narrow_distinct(
    Mapped columns, list conditions, const u32 *numbers, u64 n, u8 *flags, u64 n_flags, bint is_path
) except -1:
    cdef c_array.array candidates = distinct(numbers, n, flags, n_flags)
    cdef u64 n_candidates = len(candidates)
    cdef c_array.array strings = candidates
    cdef bytearray verdicts = bytearray(b"\1") * n_candidates
    cdef u8 *verdict = <u8 *><char *>verdicts
    cdef Condition condition
    cdef u64 i
    if is_path:
        strings = new_rows(n_candidates)
        for i in range(n_candidates):
            strings.data.as_uints[i] = columns.paths_string.at[candidates.data.as_uints[i]]
    for condition in conditions:
        condition.narrow(
            columns,
            candidates.data.as_uints if condition.domain == OF_PATH else strings.data.as_uints,
            n_candidates, verdict,
        )
    for i in range(n_candidates):
        flags[candidates.data.as_uints[i]] = verdict[i]
    return 0


# Numbers of a column at some rows.
cdef c_array.array gather(const u32 *column, const u32 *rows, u64 n):
    cdef c_array.array out = new_rows(n)
    cdef u64 i
    for i in range(n):
        out.data.as_uints[i] = column[rows[i]]
    return out


# keep[i] = whether row i (of opens, or of executions) passes an and-list.
cdef int narrow_group(
    Mapped columns, list group, Domain domain, const u32 *rows, u64 n, u8 *keep
) except -1:
    cdef const u32 *paths = columns.opens_path.at
    cdef Condition condition
    cdef list of_path = []
    cdef list of_cwd = []
    cdef list others = []
    if domain == OF_EXECUTION:
        paths = <const u32 *>columns.executions_binary.at
    for condition in group:
        if condition.domain == OF_PATH or condition.domain == OF_PATH_TEXT:
            of_path.append(condition)
        elif condition.domain == OF_CWD_TEXT:
            of_cwd.append(condition)
        else:
            others.append(condition)
    # what looks at bits comes before what looks at text
    of_path.sort(key=domain_of)
    others.sort(key=domain_of, reverse=True)
    memset(keep, 1, n)
    narrow_by_number(columns, of_path, paths, rows, n, True, keep)
    narrow_by_number(columns, of_cwd, columns.executions_cwd.at, rows, n, False, keep)
    for condition in others:
        condition.narrow(columns, rows, n, keep)
    return 0


def domain_of(Condition condition):
    """Return the domain of a condition: the higher, the cheaper among those of one execution."""
    return condition.domain


# The rows of `candidates` that pass an or-list of and-lists.
cdef c_array.array evaluate(
    Mapped columns, object groups, dict makers, Domain domain, c_array.array candidates
):
    cdef u64 n = len(candidates)
    cdef bytearray memory = bytearray(2 * n)
    cdef u8 *keep = <u8 *><char *>memory
    cdef u8 *kept = keep + n
    cdef list group
    cdef u64 i
    for items in groups or [[]]:
        group = [make_condition(makers, item) for item in items]
        narrow_group(columns, group, domain, candidates.data.as_uints, n, keep)
        for i in range(n):
            kept[i] |= keep[i]
    return select(candidates, kept)


cdef c_array.array select(c_array.array candidates, const u8 *kept):
    cdef c_array.array out
    cdef u64 n = len(candidates)
    cdef u64 n_out = 0
    cdef u64 i
    for i in range(n):
        n_out += kept[i]
    out = new_rows(n_out)
    n_out = 0
    for i in range(n):
        if kept[i]:
            out.data.as_uints[n_out] = candidates.data.as_uints[i]
            n_out += 1
    return out


def filter_opens(Mapped columns not None, groups, rows=None):
    """Return the rows of `opens` that pass a filter, of all or of `rows`."""
    cdef c_array.array candidates = row_array(rows, columns.n_opens)
    return evaluate(columns, groups, OPEN_CONDITIONS, OF_OPEN, candidates)


def filter_executions(Mapped columns not None, groups, rows=None):
    """Return the rows of `executions` that pass a filter, of all or of `rows`."""
    cdef c_array.array candidates = row_array(rows, columns.n_executions)
    return evaluate(columns, groups, EXECUTION_CONDITIONS, OF_EXECUTION, candidates)


def filter_paths(Mapped columns not None, groups):
    """Return the rows of `paths` of which some open passes a filter."""
    cdef c_array.array opens = filter_opens(columns, groups)
    cdef c_array.array numbers = gather(columns.opens_path.at, opens.data.as_uints, len(opens))
    cdef bytearray flags = bytearray(columns.n_paths)
    return distinct(numbers.data.as_uints, len(opens), <u8 *><char *>flags, columns.n_paths)
