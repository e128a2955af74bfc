# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Columns of an image -> JSON entries with the keys of docs/nfsdb-json.md.

Order of the keys: p x s e b w v c r i h u a y ! o, then n m d l t of the products that the image has.
The one place that says how an entry looks; threads make ranges of entries.
"""
from libc.string cimport memcpy, memset

from libetrace.core.types cimport (
    CHANGE_LETTERS, N_CHANGES, N_USAGE, USAGE_LETTERS, s64, u8, u32, u64,
)
from libetrace.image.columns cimport S8, Columns, first_of
from libetrace.core.crew cimport MAX_THREADS, Workload, run_crew
from libetrace.image.column_builder cimport NONE
from libetrace.image.path_facts cimport reports_path
from libetrace.convert.table_text cimport (
    FIXED_BYTES, Texts, make_texts, put_environment, put_mounts, put_number, put_products,
    put_reference, put_signed, put_string, put_strings, put_text, texts_free,
)
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free, buffer_reserve
from libetrace.core.scan cimport etrace_add, etrace_put_decimal, etrace_put_text, etrace_take
from libetrace.convert.text_file cimport TextFile, add_text, file_begin, file_end, file_stop

import os

cdef enum:
    RANGE_ROWS = 1024  # executions that a thread takes at a time


# ---- an execution ----


cdef int put_head(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef int binary = columns.executions_binary.at[row]
    cdef char *to
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b'{"p":')
    to = put_signed(to, columns.executions_upid.at[row])
    to = put_signed(etrace_put_text(to, b',"x":'), columns.executions_index.at[row])
    to = put_signed(etrace_put_text(to, b',"s":'), columns.executions_start_ns.at[row])
    to = put_signed(etrace_put_text(to, b',"e":'), columns.executions_elapsed_ns.at[row])
    out.len = to - out.data
    if binary == NONE:
        if put_text(out, b',"b":""') < 0:
            return -1
    elif put_string(out, b',"b":', texts, columns.paths_string.at[binary]) < 0:
        return -1
    return put_string(out, b',"w":', texts, columns.executions_cwd.at[row])


cdef int put_children(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = columns.executions_children_start.at[row]
    cdef u64 i
    cdef char *to
    for i in range(begin, columns.executions_children_start.at[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b',{"p":' if i > begin else b'{"p":')
        to = put_signed(to, columns.children_upid.at[i])
        to = etrace_put_text(to, b',"f":')
        to = etrace_put_decimal(to, columns.children_flags.at[i])
        if columns.fork_times_time_ns.at != NULL and columns.fork_times_time_ns.at[i] != NONE:
            to = put_signed(etrace_put_text(to, b',"t":'), columns.fork_times_time_ns.at[i])
        to = etrace_put_text(to, b"}")
        out.len = to - out.data
    return 0


cdef int put_links(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = columns.executions_readers_start.at[row]
    cdef u64 i
    cdef char *to
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b'],"r":')
    to = put_reference(to, columns, columns.executions_parent.at[row])
    out.len = etrace_put_text(to, b',"i":[') - out.data
    for i in range(begin, columns.executions_readers_start.at[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b"," if i > begin else b"")
        to = put_reference(to, columns, columns.pipe_readers_execution.at[i])
        out.len = to - out.data
    return 0


# Inherited files of the execution, if this database has them.
cdef int put_inherited(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = columns.executions_inherited_start.at[row]
    cdef u32 path
    cdef u64 i
    if put_text(out, b'],"h":[') < 0:
        return -1
    for i in range(begin, columns.executions_inherited_start.at[row + 1]):
        path = columns.paths_string.at[columns.inherited_path.at[i]]
        if put_number(out, b',{"d":' if i > begin else b'{"d":',
                      columns.inherited_descriptor.at[i]) < 0 \
                or put_string(out, b',"p":', texts, path) < 0 \
                or put_number(out, b',"m":', columns.inherited_mode.at[i]) < 0 \
                or put_text(out, b"}") < 0:
            return -1
    return 0


cdef int put_cpus(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = columns.executions_cpus_start.at[row]
    cdef u64 i
    cdef char *to
    if put_text(out, b'],"u":[') < 0:
        return -1
    for i in range(begin, columns.executions_cpus_start.at[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b',{"c":' if i > begin else b'{"c":')
        to = etrace_put_decimal(to, columns.cpus_cpu.at[i])
        to = put_signed(etrace_put_text(to, b',"t":'), columns.cpus_time_ns.at[i])
        out.len = etrace_put_text(to, b"}") - out.data
    return 0


cdef int put_change(Columns columns, const Texts *texts, Buffer *out, u64 i,
                    bint is_first) noexcept nogil:
    cdef u8 kind = columns.changes_kind.at[i]
    cdef s64 name = columns.changes_name.at[i]
    cdef char[2] letter
    letter[0] = CHANGE_LETTERS[kind - 1] if 1 <= kind <= N_CHANGES else c'?'
    letter[1] = 0
    if put_text(out, b',"t":[{"k":"' if is_first else b',{"k":"') < 0 \
            or put_text(out, letter) < 0 \
            or put_number(out, b'","t":', columns.changes_time_ns.at[i]) < 0 \
            or (name != NONE and put_string(out, b',"n":', texts, <u32>name) < 0):
        return -1
    return put_text(out, b"}")


# "t" of an open, whose changes begin at change[0] if it has some.
cdef int put_changes(Columns columns, const Texts *texts, Buffer *out, u64 opened,
                     u64 *change) noexcept nogil:
    cdef const u32 *opens = columns.changes_open.at
    cdef u64 first = change[0]
    while change[0] < columns.changes_open.n and opens[change[0]] == opened:
        if put_change(columns, texts, out, change[0], change[0] == first) < 0:
            return -1
        change[0] += 1
    return put_text(out, b"]") if change[0] > first else 0


# "u" of an open, whose uses begin at use[0] if it has some.
cdef int put_uses(Columns columns, Buffer *out, u64 opened, u64 *use) noexcept nogil:
    cdef const u32 *opens = columns.open_uses_open.at
    cdef u64 first = use[0]
    cdef char *to
    while use[0] < columns.open_uses_open.n and opens[use[0]] == opened:
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len,
                             b',"u":[{"b":' if use[0] == first else b',{"b":')
        to = put_signed(to, columns.open_uses_begin_ns.at[use[0]])
        to = put_signed(etrace_put_text(to, b',"e":'), columns.open_uses_end_ns.at[use[0]])
        to = etrace_put_decimal(etrace_put_text(to, b',"m":'),
                                columns.open_uses_mode.at[use[0]])
        out.len = etrace_put_text(to, b"}") - out.data
        use[0] += 1
    return put_text(out, b"]") if use[0] > first else 0


cdef int put_open(Columns columns, const Texts *texts, Buffer *out, u64 i, u64 *change, u64 *use,
                  bint is_first) noexcept nogil:
    cdef u32 row = columns.opens_path.at[i]
    cdef u32 path = columns.paths_string.at[row]
    cdef u32 original = columns.opens_original.at[i]
    cdef s64 begin = columns.opens_open_ns.at[i]
    cdef s64 end = columns.opens_close_ns.at[i]
    cdef s64 until = columns.opens_until_ns.at[i]
    cdef char *to
    if put_string(out, b'{"p":' if is_first else b',{"p":', texts, path) < 0:
        return -1
    if original != path and put_string(out, b',"o":', texts, original) < 0:
        return -1
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b',"b":')
    to = put_signed(to, begin)
    to = put_signed(etrace_put_text(to, b',"e":'), end)
    if until > max(begin, end):
        to = put_signed(etrace_put_text(to, b',"l":'), until)
    out.len = to - out.data
    if put_changes(columns, texts, out, i, change) < 0 or put_uses(columns, out, i, use) < 0 \
            or buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b',"m":')
    to = etrace_put_decimal(to, columns.opens_mode.at[i])
    to = put_signed(etrace_put_text(to, b',"s":'), columns.opens_size.at[i])
    if reports_path(columns, i):
        to = etrace_put_decimal(etrace_put_text(to, b',"f":'), columns.paths_mode.at[row])
        to = put_signed(etrace_put_text(to, b',"n":'), columns.paths_size.at[row])
    out.len = etrace_put_text(to, b"}") - out.data
    return 0


# The parts of each entry that are written, beside its row.
cdef struct Entries:
    Texts texts
    bint shows_uses  # of inherited files and last uses
    u64 split_bytes  # of paths that an entry may have; 0: any


cdef inline u64 length_of(Columns columns, u32 string) noexcept nogil:
    return columns.strings_start.at[string + 1] - columns.strings_start.at[string]


cdef u64 path_bytes(Columns columns, u64 opened) noexcept nogil:
    cdef u32 path = columns.paths_string.at[columns.opens_path.at[opened]]
    cdef u32 original = columns.opens_original.at[opened]
    return length_of(columns, path) + (length_of(columns, original) if original != path else 0)


# Ends the entry, and begins it again for more files than one may hold.
cdef int split_entry(Columns columns, const Entries *entries, Buffer *out, u32 row, size_t begin,
                     size_t head_len) noexcept nogil:
    if put_text(out, b"]") < 0 or put_products(columns, &entries.texts, out, row) < 0 \
            or put_text(out, b"},\n") < 0 or buffer_reserve(out, head_len) < 0:
        return -1
    memcpy(out.data + out.len, out.data + begin, head_len)
    out.len += head_len
    return 0


# The opens of an execution whose entry begins at `begin` of the text; returns how many entries they take.
cdef s64 put_opens(Columns columns, const Entries *entries, Buffer *out, u32 row,
                   size_t begin) noexcept nogil:
    cdef u64 first = columns.executions_opens_start.at[row]
    cdef u64 change = first_of(columns.changes_open, first)
    cdef u64 use = first_of(columns.open_uses_open, first)
    cdef size_t head_len = out.len - begin
    cdef u64 n_bytes = 0
    cdef s64 n_entries = 1
    cdef u64 i
    for i in range(first, columns.executions_opens_start.at[row + 1]):
        if entries.split_bytes:
            if n_bytes and n_bytes + path_bytes(columns, i) > entries.split_bytes:
                if split_entry(columns, entries, out, row, begin, head_len) < 0:
                    return -1
                n_bytes = 0
                n_entries += 1
            n_bytes += path_bytes(columns, i)
        if put_open(columns, &entries.texts, out, i, &change, &use,
                    out.data[out.len - 1] == c'[') < 0:
            return -1
    return n_entries


# What the execution used, as far as it is known.
cdef int put_usage(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef const S8 *usage = &columns.usage_user_ns
    cdef bint is_first = True
    cdef s64 value
    cdef char *to
    cdef int i
    if columns.usage_user_ns.at == NULL or buffer_reserve(out, FIXED_BYTES) < 0:
        return 0 if columns.usage_user_ns.at == NULL else -1
    to = out.data + out.len
    for i in range(N_USAGE):
        value = usage[i].at[row]
        if value == NONE:
            continue
        to = etrace_put_text(to, b'"a":{"' if is_first else b',"')
        to[0] = USAGE_LETTERS[i]
        to = put_signed(etrace_put_text(to + 1, b'":'), value)
        is_first = False
    out.len = (to if is_first else etrace_put_text(to, b"},")) - out.data
    return 0


# What the execution wrote, if that was captured.
cdef int put_written(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef const u32 *executions = columns.written_execution.at
    cdef u64 begin = first_of(columns.written_execution, row)
    cdef u64 i = begin
    while i < columns.written_execution.n and executions[i] == row:
        if put_number(out, b',{"d":' if i > begin else b'"y":[{"d":',
                      columns.written_descriptor.at[i]) < 0 \
                or (columns.written_cut_bytes.at[i] and put_number(
                    out, b',"c":', columns.written_cut_bytes.at[i]) < 0) \
                or put_string(out, b',"t":', texts, columns.written_string.at[i]) < 0 \
                or put_text(out, b"}") < 0:
            return -1
        i += 1
    return put_text(out, b"],") if i > begin else 0


cdef int put_status(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef s64 status = columns.executions_status.at[row]
    if put_text(out, b"],") < 0 or put_usage(columns, out, row) < 0 \
            or put_written(columns, texts, out, row) < 0:
        return -1
    if status != NONE and (put_number(out, b'"!":', status) < 0 or put_text(out, b",") < 0):
        return -1
    return put_text(out, b'"o":[')


# Whether the database has inherited files and last uses; those of other tools do not.
cdef bint shows_uses(Columns columns, bint by_default) noexcept nogil:
    cdef const s64 *until = columns.opens_until_ns.at
    cdef size_t i
    for i in range(columns.opens_until_ns.n):
        if until[i] != NONE:
            return True
    if columns.inherited_path.n > 0:
        return True
    return by_default and columns.opens_until_ns.n == 0


# One execution as an entry, or as several when it is split; returns how many, -1 without memory.
cdef s64 put_entry(Columns columns, const Entries *entries, Buffer *out, u32 row) noexcept nogil:
    cdef const u64 *argv = columns.executions_argv_start.at
    cdef const Texts *texts = &entries.texts
    cdef size_t begin = out.len
    cdef s64 n_entries
    if put_head(columns, texts, out, row) < 0 \
            or put_strings(out, b',"v":[', texts, columns.arguments_string.at, argv[row],
                           argv[row + 1]) < 0 \
            or put_text(out, b',"c":[') < 0 or put_children(columns, out, row) < 0 \
            or put_links(columns, out, row) < 0 \
            or (entries.shows_uses and put_inherited(columns, texts, out, row) < 0) \
            or put_cpus(columns, out, row) < 0 or put_status(columns, texts, out, row) < 0:
        return -1
    n_entries = put_opens(columns, entries, out, row, begin)
    if n_entries < 0 or put_text(out, b"]") < 0 or put_products(columns, texts, out, row) < 0 \
            or put_text(out, b"}") < 0:
        return -1
    return n_entries


# ---- all of them ----


# Appends the executions [begin, end), each ended by a newline, by a comma and one but the last of all.
cdef s64 put_entries(Columns columns, const Entries *entries, Buffer *out, size_t begin,
                     size_t end) noexcept nogil:
    cdef size_t n = columns.executions_upid.n
    cdef s64 n_entries = 0
    cdef s64 n_more
    cdef size_t row
    for row in range(begin, end):
        n_more = put_entry(columns, entries, out, <u32>row)
        if n_more < 0 or put_text(out, b",\n" if row + 1 < n else b"\n") < 0:
            return -1
        n_entries += n_more
    return n_entries


# The entries on their way into a file, as all threads see them.
cdef struct Export:
    void *columns
    const Entries *entries
    Workload load  # in executions
    TextFile file
    u64 n_entries


cdef s64 export_range(Columns columns, Export *export, Buffer *out, u64 number) noexcept nogil:
    cdef u64 begin = number * RANGE_ROWS
    cdef u64 end = min(begin + RANGE_ROWS, export.load.total)
    cdef s64 n_entries
    out.len = 0
    n_entries = put_entries(columns, export.entries, out, begin, end)
    if n_entries < 0 or add_text(&export.file, number, out) < 0:
        return -1
    etrace_add(&export.load.done, end - begin)
    return n_entries


# Makes ranges until none is left.
cdef int export_ranges(Columns columns, Export *export) noexcept nogil:
    cdef Buffer out
    cdef u64 number
    cdef s64 n_entries = 0
    memset(&out, 0, sizeof(out))
    while n_entries >= 0 and not export.load.cancelled and not export.load.failed:
        number = etrace_take(&export.load.taken)
        if number * RANGE_ROWS >= export.load.total:
            break
        n_entries = export_range(columns, export, &out, number)
        if n_entries > 0:
            etrace_add(&export.n_entries, <u64>n_entries)
    buffer_free(&out)
    if n_entries < 0 or export.load.cancelled:
        file_stop(&export.file)
    return -1 if n_entries < 0 else 0


cdef int export_on_thread(void *argument, u32 worker) noexcept with gil:
    cdef Export *export = <Export *>argument
    cdef Columns columns = <Columns>export.columns
    cdef int status
    with nogil:
        status = export_ranges(columns, export)
    return status


cdef int check(const Export *export, int status) except -1:
    if export.file.error:
        raise OSError(export.file.error, os.strerror(export.file.error))
    if status < 0 or export.load.failed:
        raise MemoryError
    return 0


cdef class Exporter:
    """Texts of one image: entries, environment and mounts.

    Entries whose files have paths of more than `split` bytes together are broken into several. Where
    `has_last_uses`: the database has the ends of uses, which no column shows.
    """

    cdef Columns columns
    cdef Entries entries

    def __cinit__(self, Columns columns not None, *, u64 split=0, bint has_last_uses=True):
        cdef int status
        self.columns = columns
        self.entries.split_bytes = split
        self.entries.shows_uses = shows_uses(columns, has_last_uses)
        with nogil:
            status = make_texts(columns, &self.entries.texts)
        if status < 0:
            raise MemoryError

    def __dealloc__(self):
        texts_free(&self.entries.texts)

    @property
    def n_executions(self):
        """How many executions there are."""
        return self.columns.executions_upid.n

    def write(self, int fd, *, u32 jobs=1, progress=None):
        """Write all entries to an empty regular file on `jobs` threads; return how many they are.

        OSError, MemoryError, and whatever `progress` or a signal handler raises; the file then holds
        part of the text.
        """
        cdef Export export
        if not 1 <= jobs <= MAX_THREADS:
            raise ValueError(f"jobs must be 1 to {MAX_THREADS}, not {jobs}")
        memset(&export, 0, sizeof(export))
        export.columns = <void *>self.columns
        export.entries = &self.entries
        export.load.total = self.n_executions
        check(&export, file_begin(&export.file, fd, b"[\n"))
        run_crew(export_on_thread, &export, &export.load, jobs, progress)
        check(&export, 0)
        check(&export, file_end(&export.file, b"]\n"))
        return export.n_entries

    def text(self, size_t begin, size_t end):
        """Return entries of executions, each ended by a newline, by a comma and one but the last."""
        cdef Buffer out
        cdef s64 status
        if not begin <= end <= self.n_executions:
            raise IndexError(f"executions {begin} to {end} of {self.n_executions}")
        memset(&out, 0, sizeof(out))
        with nogil:
            status = put_entries(self.columns, &self.entries, &out, begin, end)
        return take_text(&out, status)

    def environment(self):
        """Return the text of `.nfsdb.env.json`."""
        cdef Buffer out
        memset(&out, 0, sizeof(out))
        return take_text(&out, put_environment(self.columns, &self.entries.texts, &out))

    def mounts(self):
        """Return the text of `.nfsdb.mounts.json`."""
        cdef Buffer out
        memset(&out, 0, sizeof(out))
        return take_text(&out, put_mounts(self.columns, &self.entries.texts, &out))


cdef bytes take_text(Buffer *out, s64 status):
    try:
        if status < 0:
            raise MemoryError
        return out.data[:out.len]
    finally:
        buffer_free(out)
