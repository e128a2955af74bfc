# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One execution: a row of the table `executions`; values are made when asked for.

Meaning of the columns: docs/nfsdb-json.md, "Executions"; docs/postprocess.md.
"""
import base64
import os.path

cimport cython

from libetrace.image.columns cimport S8
from libetrace.image.mapped cimport NONE, Span
from libetrace.db.compilation cimport make_compilation
from libetrace.db.descendants cimport child_rows, descent_rows, find_open
from libetrace.db.open_file cimport compare, make_open
from libetrace.select.path_kinds cimport compilation_of, linked_of
from libetrace.core.types cimport N_USAGE, USAGE_LETTERS, u32

from libetrace.db.values import Cid, CpuTime, Eid, Inherited, Usage


# `row` is one of the table: the caller checked it.
cdef Execution make_execution(Mapped columns, u64 row):
    cdef Execution out = Execution.__new__(Execution)
    out.columns = columns
    out.row = row
    return out


cdef object eid_of(Mapped columns, s64 row):
    if row == NONE:
        return Eid(-1, 0)
    if not 0 <= row < <s64>columns.n_executions:
        raise columns.broken("execution", row, row)
    return Eid(columns.executions_upid.at[row], columns.executions_index.at[row])


cdef dict name_of(Mapped columns, s64 row):
    pid, index = eid_of(columns, row)
    return {"p": pid, "x": index}


# Whether the trace has inherited files; databases of Samsung CAS do not.
cdef bint has_inherited(Mapped columns):
    return columns.n_opens > 0 and columns.opens_until_ns.at[0] != NONE


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Execution:
    """One exec of one process; index 0 is the process before its first exec."""

    # ---- who ----

    @property
    def ptr(self):
        """Its position in the database: `database[entry.ptr]`."""
        return self.row

    @property
    def eid(self):
        """(upid, index)."""
        return eid_of(self.columns, self.row)

    @property
    def parent_eid(self):
        """The execution that forked it; (-1, 0) at a root."""
        return eid_of(self.columns, self.columns.executions_parent.at[self.row])

    @property
    def parent(self):
        """The execution that forked it, None at a root."""
        cdef s64 row = self.columns.executions_parent.at[self.row]
        return None if row == NONE else self.columns.execution(row)

    @property
    def child_cids(self):
        """The processes it forked, in that order."""
        cdef Mapped columns = self.columns
        cdef Span span
        cdef u64 i
        columns.span(&columns.executions_children_start, self.row, columns.children_upid.n, &span)
        return [
            Cid(columns.children_upid.at[i], columns.children_flags.at[i])
            for i in range(span.first, span.last)
        ]

    @property
    def childs(self):
        """All executions of all processes it forked, in order of the forks."""
        return [self.columns.execution(row) for row in child_rows(self.columns, self.row)]

    cdef object neighbour(self, s64 row):
        if 0 <= row < <s64>self.columns.n_executions:
            if self.columns.executions_upid.at[row] == self.columns.executions_upid.at[self.row]:
                return self.columns.execution(row)
        return None

    @property
    def next(self):
        """The next execution of the same process, None at the last."""
        return self.neighbour(<s64>self.row + 1)

    @property
    def prev(self):
        """The execution before it of the same process, None at index 0."""
        return self.neighbour(<s64>self.row - 1)

    @property
    def wpid(self):
        """upid of the shell that wraps it, None without one."""
        cdef s64 row
        if self.row >= self.columns.wrappers_execution.n:
            return None
        row = self.columns.wrappers_execution.at[self.row]
        return None if row == NONE else eid_of(self.columns, row).pid

    def is_wrapped(self):
        """Whether a shell wraps it."""
        return self.wpid is not None

    @property
    def pipe_eids(self):
        """Executions that could read its pipes."""
        cdef Mapped columns = self.columns
        cdef Span span
        cdef u64 i
        columns.span(&columns.executions_readers_start, self.row, columns.pipe_readers_execution.n, &span)
        return [eid_of(columns, columns.pipe_readers_execution.at[i]) for i in range(span.first, span.last)]

    # ---- what and when ----

    @property
    def binary(self):
        """Path of the program; empty for index 0."""
        cdef s64 path = self.columns.executions_binary.at[self.row]
        return "" if path == NONE else self.columns.decode_path(path)

    @property
    def cwd(self):
        """Working directory at the exec; empty for index 0."""
        return self.columns.decode(self.columns.executions_cwd.at[self.row])

    @property
    def bpath(self):
        """Absolute path of the program; empty for index 0."""
        binary = self.binary
        return os.path.join(self.cwd, binary) if binary else ""

    @property
    def argv(self):
        """Arguments; for index 0 those of the parent."""
        cdef Mapped columns = self.columns
        cdef Span span
        cdef u64 i
        columns.span(&columns.executions_argv_start, self.row, columns.arguments_string.n, &span)
        return [columns.decode(columns.arguments_string.at[i]) for i in range(span.first, span.last)]

    @property
    def command(self):
        """Arguments joined by blanks."""
        return " ".join(self.argv)

    @property
    def stime(self):
        """Its first event, ns since the trace began."""
        return self.columns.executions_start_ns.at[self.row]

    @property
    def etime(self):
        """ns until its last event or the next exec."""
        return self.columns.executions_elapsed_ns.at[self.row]

    @property
    def return_code(self):
        """Exit status, 128 + N for signal N; None when this execution did not end the process."""
        cdef short status = self.columns.executions_status.at[self.row]
        return None if status == NONE else status

    @property
    def cpus(self):
        """Where it ran, an item whenever that changed."""
        cdef Mapped columns = self.columns
        cdef Span span
        cdef u64 i
        columns.span(&columns.executions_cpus_start, self.row, columns.cpus_cpu.n, &span)
        return [
            CpuTime(columns.cpus_cpu.at[i], columns.cpus_time_ns.at[i]) for i in range(span.first, span.last)
        ]

    @property
    def usage(self):
        """CPU time, memory and I/O of it; None where they are not known."""
        cdef S8 *columns = &self.columns.usage_user_ns
        cdef int i
        if self.row >= columns[0].n:
            return Usage(*[None] * N_USAGE)
        found = [columns[i].at[self.row] for i in range(N_USAGE)]
        return Usage(*[None if value == NONE else value for value in found])

    # ---- files ----

    @property
    def inherited(self):
        """Files that it began with as open descriptors."""
        cdef Mapped columns = self.columns
        cdef Span span
        cdef u64 i
        columns.span(&columns.executions_inherited_start, self.row, columns.inherited_path.n, &span)
        return [
            Inherited(
                columns.inherited_descriptor.at[i],
                columns.decode_path(columns.inherited_path.at[i]),
                columns.inherited_mode.at[i],
            )
            for i in range(span.first, span.last)
        ]

    cdef list opens_of(self, list rows):
        cdef Span span
        cdef u64 i
        cdef list out = []
        for row in rows:
            self.columns.span(&self.columns.executions_opens_start, row, self.columns.n_opens, &span)
            for i in range(span.first, span.last):
                out.append(make_open(self.columns, i))
        return out

    # Paths of the opens, each once, in order of the first.
    cdef list paths_of(self, list rows):
        cdef Span span
        cdef u64 i
        cdef dict paths = {}
        for row in rows:
            self.columns.span(&self.columns.executions_opens_start, row, self.columns.n_opens, &span)
            for i in range(span.first, span.last):
                paths[self.columns.opens_path.at[i]] = None
        return [self.columns.decode_path(path) for path in paths]

    @property
    def opens(self):
        """Its opened files, by original path."""
        return self.opens_of([self.row])

    @property
    def openpaths(self):
        """Paths that it opened, each once."""
        return self.paths_of([self.row])

    @property
    def opens_with_children(self):
        """The opened files of it and of all that descend from it."""
        return self.opens_of(descent_rows(self.columns, self.row))

    @property
    def openpaths_with_children(self):
        """Paths that it and all that descend from it opened, each once."""
        return self.paths_of(descent_rows(self.columns, self.row))

    def filtered_opens(self, file_filter=None, **conditions):
        """Its opened files that pass a filter: the arguments of `nfsdb.filtered_opens`."""
        cdef Span span
        from libetrace.select.filters import filter_opens, open_groups

        self.columns.span(&self.columns.executions_opens_start, self.row, self.columns.n_opens, &span)
        rows = filter_opens(
            self.columns, open_groups(file_filter, conditions), range(span.first, span.last)
        )
        return [make_open(self.columns, row) for row in rows]

    # ---- what post-processing says ----

    # The bytes of its command patterns; NULL when the database has none.
    cdef const u8 *bits(self, u64 *n_bytes) except? NULL:
        cdef Mapped columns = self.columns
        n_bytes[0] = (columns.patterns_string.n + 7) / 8
        if not n_bytes[0]:
            return NULL
        if (self.row + 1) * n_bytes[0] > columns.pattern_bits_bits.n:
            raise columns.broken("pattern_bits", self.row, columns.pattern_bits_bits.n)
        return columns.pattern_bits_bits.at + self.row * n_bytes[0]

    def pcp_index(self):
        """Return the numbers of the command patterns that match it (`nfsdb.pcp_list()`)."""
        cdef u64 n_bytes
        cdef const u8 *bits = self.bits(&n_bytes)
        cdef u64 i
        if bits == NULL:
            return []
        return [
            i for i in range(self.columns.patterns_string.n) if bits[i >> 3] & (0x80 >> (i & 7))
        ]

    @property
    def pcp(self):
        """The command patterns that match it."""
        return [self.columns.decode(self.columns.patterns_string.at[i]) for i in self.pcp_index()]

    def has_pcp(self):
        """Whether a command pattern matches it."""
        return bool(self.pcp_index())

    # ---- make and ninja ----

    @property
    def targets(self):
        """Outputs of the edge of ninja, or the goal of make it ran for; [] when not known."""
        cdef Mapped columns = self.columns
        cdef Span names
        cdef s64 row
        cdef u64 i
        if self.row >= columns.execution_targets_target.n or columns.execution_targets_target.at[self.row] == NONE:
            return []
        row = columns.execution_targets_target.at[self.row]
        if row < 0 or <u64>row >= columns.targets_kind.n:
            raise columns.broken("execution_targets.target", self.row, row)
        columns.span(&columns.targets_names_start, row, columns.target_names_string.n, &names)
        return [columns.decode(columns.target_names_string.at[i]) for i in range(names.first, names.last)]

    @property
    def linked_path(self):
        """The module that it made, None when it made none."""
        cdef s64 row = linked_of(self.columns, self.row)
        return None if row == NONE else self.columns.decode_path(self.columns.linked_path.at[row])

    @property
    def linked_type(self):
        """0 for an archive, 1 for the output of a linker, None when it made no module."""
        cdef s64 row = linked_of(self.columns, self.row)
        return None if row == NONE else self.columns.linked_type.at[row]

    @property
    def linked_file(self):
        """The open of it or a descendant that wrote the linked module; None without one."""
        cdef s64 row = linked_of(self.columns, self.row)
        cdef s64 open
        if row == NONE:
            return None
        open = find_open(
            self.columns, descent_rows(self.columns, self.row), self.columns.linked_path.at[row],
            True,
        )
        return None if open == NONE else make_open(self.columns, open)

    @property
    def linked_ptr(self):
        """`linked_file.ptr`, None without one."""
        file = self.linked_file
        return None if file is None else file.ptr

    def is_linking(self):
        """Whether it made a module."""
        return linked_of(self.columns, self.row) != NONE

    @property
    def compilation_info(self):
        """Its compilation, None when it compiled nothing."""
        cdef s64 row = compilation_of(self.columns, self.row)
        return None if row == NONE else make_compilation(self.columns, row)

    def has_compilations(self):
        """Whether it compiled."""
        return compilation_of(self.columns, self.row) != NONE

    # ---- as a value ----

    cdef list forks(self):
        cdef S8 time = self.columns.fork_times_time_ns
        cdef u64 first = self.columns.executions_children_start.at[self.row]
        out = [{"p": pid, "f": flags} for pid, flags in self.child_cids]
        for i in range(len(out)):
            if time.at != NULL and first + <u64>i < time.n and time.at[first + <u64>i] != NONE:
                out[i]["t"] = time.at[first + <u64>i]
        return out

    def json(self):
        """Return the execution as in `.nfsdb.json`, products included."""
        out = name_of(self.columns, self.row)
        out |= {
            "s": self.stime,
            "e": self.etime,
            "b": self.binary,
            "w": self.cwd,
            "v": self.argv,
            "c": self.forks(),
            "r": name_of(self.columns, self.columns.executions_parent.at[self.row]),
            "i": [{"p": pid, "x": index} for pid, index in self.pipe_eids],
        }
        if has_inherited(self.columns):
            out["h"] = [{"d": fd, "p": path, "m": mode} for fd, path, mode in self.inherited]
        out["u"] = [{"c": cpu, "t": time} for cpu, time in self.cpus]
        used = {chr(USAGE_LETTERS[i]): value for i, value in enumerate(self.usage)
                if value is not None}
        if used:
            out["a"] = used
        if self.return_code is not None:
            out["!"] = self.return_code
        out["o"] = [file.json() for file in self.opens]
        return out | self._products()

    def _products(self):
        cdef u64 n_bytes
        cdef const u8 *bits = self.bits(&n_bytes)
        out = {}
        if bits != NULL:
            out["n"] = base64.b64encode((<const char *>bits)[:n_bytes]).decode()
        if self.wpid is not None:
            out["m"] = self.wpid
        if self.has_compilations():
            out["d"] = self.compilation_info.json()
        if self.is_linking():
            out["l"] = self.linked_path
            out["t"] = self.linked_type
        return out

    def __richcmp__(self, other, int operator):
        if not isinstance(other, Execution) or (<Execution>other).columns is not self.columns:
            return NotImplemented
        return compare(self.row, (<Execution>other).row, operator)

    def __hash__(self):
        return hash((id(self.columns), self.row))

    def __repr__(self):
        pid, index = self.eid
        return f"<Execution ({pid}, {index}) {self.command[:60]!r}>"
