# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Columns of an image -> JSON entries with the keys of docs/nfsdb-json.md.

Order of the keys: p x s e b w v c r i h u a ! o, then n m d l t of the products that the image has.
The one place that says how an entry looks; threads make ranges of entries.
"""
from libc.string cimport memcpy, memset

from libetrace.core.changes cimport CHANGE_LETTERS, N_CHANGES
from libetrace.core.usage cimport N_USAGE, USAGE_LETTERS
from libetrace.image.columns cimport Columns, s16_of, s32_of, s64_of, u8_of, u32_of, u64_of
from libetrace.core.crew cimport MAX_THREADS, Workload, run_crew
from libetrace.image.column_builder cimport NONE
from libetrace.convert.value_text cimport (
    FIXED_BYTES, Texts, make_texts, put_number, put_reference, put_signed, put_string, put_strings,
    put_text, texts_free,
)
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free, buffer_reserve
from libetrace.convert.product_text cimport put_products
from libetrace.core.scan cimport etrace_add, etrace_put_decimal, etrace_put_text, etrace_take
from libetrace.image.schema cimport (
    ARGUMENTS_STRING, CHANGES_KIND, CHANGES_NAME, CHANGES_OPEN, CHANGES_TIME_NS, CHILDREN_FLAGS,
    CHILDREN_UPID, CPUS_CPU, CPUS_TIME_NS, EXECUTIONS_ARGV_START, EXECUTIONS_BINARY,
    EXECUTIONS_CHILDREN_START, EXECUTIONS_CPUS_START, EXECUTIONS_CWD, EXECUTIONS_ELAPSED_NS,
    EXECUTIONS_INDEX, EXECUTIONS_INHERITED_START, EXECUTIONS_OPENS_START, EXECUTIONS_PARENT,
    EXECUTIONS_READERS_START, EXECUTIONS_START_NS, EXECUTIONS_STATUS, EXECUTIONS_UPID,
    INHERITED_DESCRIPTOR, INHERITED_MODE, INHERITED_PATH, OPENS_CLOSE_NS, OPENS_MODE,
    OPENS_OPEN_NS, OPENS_ORIGINAL, OPENS_PATH, OPENS_SIZE, OPENS_UNTIL_NS, OPEN_USES_BEGIN_NS,
    OPEN_USES_END_NS, OPEN_USES_MODE, OPEN_USES_OPEN, PATHS_STRING, PIPE_READERS_EXECUTION,
    STRINGS_START, USAGE_USER_NS,
)
from libetrace.convert.side_text cimport put_environment, put_mounts
from libetrace.convert.text_file cimport TextFile, add_text, file_begin, file_end, file_stop
from libetrace.core.types cimport s64, u8, u32, u64

import os

cdef enum:
    RANGE_ROWS = 1024  # executions that a thread takes at a time


# ---- an execution ----


cdef int put_head(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef int binary = s32_of(columns, EXECUTIONS_BINARY)[row]
    cdef char *to
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b'{"p":')
    to = put_signed(to, s64_of(columns, EXECUTIONS_UPID)[row])
    to = put_signed(etrace_put_text(to, b',"x":'), s32_of(columns, EXECUTIONS_INDEX)[row])
    to = put_signed(etrace_put_text(to, b',"s":'), s64_of(columns, EXECUTIONS_START_NS)[row])
    to = put_signed(etrace_put_text(to, b',"e":'), s64_of(columns, EXECUTIONS_ELAPSED_NS)[row])
    out.len = to - out.data
    if binary == NONE:
        if put_text(out, b',"b":""') < 0:
            return -1
    elif put_string(out, b',"b":', texts, u32_of(columns, PATHS_STRING)[binary]) < 0:
        return -1
    return put_string(out, b',"w":', texts, u32_of(columns, EXECUTIONS_CWD)[row])


cdef int put_children(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_CHILDREN_START)[row]
    cdef u64 i
    cdef char *to
    for i in range(begin, u64_of(columns, EXECUTIONS_CHILDREN_START)[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b',{"p":' if i > begin else b'{"p":')
        to = put_signed(to, s64_of(columns, CHILDREN_UPID)[i])
        to = etrace_put_text(to, b',"f":')
        to = etrace_put_text(etrace_put_decimal(to, u64_of(columns, CHILDREN_FLAGS)[i]), b"}")
        out.len = to - out.data
    return 0


cdef int put_links(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_READERS_START)[row]
    cdef u64 i
    cdef char *to
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b'],"r":')
    to = put_reference(to, columns, s32_of(columns, EXECUTIONS_PARENT)[row])
    out.len = etrace_put_text(to, b',"i":[') - out.data
    for i in range(begin, u64_of(columns, EXECUTIONS_READERS_START)[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b"," if i > begin else b"")
        to = put_reference(to, columns, u32_of(columns, PIPE_READERS_EXECUTION)[i])
        out.len = to - out.data
    return 0


# Inherited files of the execution, if this database has them.
cdef int put_inherited(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_INHERITED_START)[row]
    cdef u32 path
    cdef u64 i
    if put_text(out, b'],"h":[') < 0:
        return -1
    for i in range(begin, u64_of(columns, EXECUTIONS_INHERITED_START)[row + 1]):
        path = u32_of(columns, PATHS_STRING)[u32_of(columns, INHERITED_PATH)[i]]
        if put_number(out, b',{"d":' if i > begin else b'{"d":',
                      u8_of(columns, INHERITED_DESCRIPTOR)[i]) < 0 \
                or put_string(out, b',"p":', texts, path) < 0 \
                or put_number(out, b',"m":', u8_of(columns, INHERITED_MODE)[i]) < 0 \
                or put_text(out, b"}") < 0:
            return -1
    return 0


cdef int put_cpus(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_CPUS_START)[row]
    cdef u64 i
    cdef char *to
    if put_text(out, b'],"u":[') < 0:
        return -1
    for i in range(begin, u64_of(columns, EXECUTIONS_CPUS_START)[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b',{"c":' if i > begin else b'{"c":')
        to = etrace_put_decimal(to, u32_of(columns, CPUS_CPU)[i])
        to = put_signed(etrace_put_text(to, b',"t":'), s64_of(columns, CPUS_TIME_NS)[i])
        out.len = etrace_put_text(to, b"}") - out.data
    return 0


# The first row of `changes` or `open_uses` that is of this open or a later one.
cdef u64 find_rows(Columns columns, int column, u64 opened) noexcept nogil:
    cdef const u32 *opens = u32_of(columns, column)
    cdef u64 low = 0
    cdef u64 high = columns.length[column]
    cdef u64 middle
    while low < high:
        middle = (low + high) / 2
        if opens[middle] < opened:
            low = middle + 1
        else:
            high = middle
    return low


cdef int put_change(Columns columns, const Texts *texts, Buffer *out, u64 i,
                    bint is_first) noexcept nogil:
    cdef u8 kind = u8_of(columns, CHANGES_KIND)[i]
    cdef s64 name = s32_of(columns, CHANGES_NAME)[i]
    cdef char[2] letter
    letter[0] = CHANGE_LETTERS[kind - 1] if 1 <= kind <= N_CHANGES else c'?'
    letter[1] = 0
    if put_text(out, b',"t":[{"k":"' if is_first else b',{"k":"') < 0 \
            or put_text(out, letter) < 0 \
            or put_number(out, b'","t":', s64_of(columns, CHANGES_TIME_NS)[i]) < 0 \
            or (name != NONE and put_string(out, b',"n":', texts, <u32>name) < 0):
        return -1
    return put_text(out, b"}")


# "t" of an open, whose changes begin at change[0] if it has some.
cdef int put_changes(Columns columns, const Texts *texts, Buffer *out, u64 opened,
                     u64 *change) noexcept nogil:
    cdef const u32 *opens = u32_of(columns, CHANGES_OPEN)
    cdef u64 first = change[0]
    while change[0] < columns.length[CHANGES_OPEN] and opens[change[0]] == opened:
        if put_change(columns, texts, out, change[0], change[0] == first) < 0:
            return -1
        change[0] += 1
    return put_text(out, b"]") if change[0] > first else 0


# "u" of an open, whose uses begin at use[0] if it has some.
cdef int put_uses(Columns columns, Buffer *out, u64 opened, u64 *use) noexcept nogil:
    cdef const u32 *opens = u32_of(columns, OPEN_USES_OPEN)
    cdef u64 first = use[0]
    cdef char *to
    while use[0] < columns.length[OPEN_USES_OPEN] and opens[use[0]] == opened:
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len,
                             b',"u":[{"b":' if use[0] == first else b',{"b":')
        to = put_signed(to, s64_of(columns, OPEN_USES_BEGIN_NS)[use[0]])
        to = put_signed(etrace_put_text(to, b',"e":'), s64_of(columns, OPEN_USES_END_NS)[use[0]])
        to = etrace_put_decimal(etrace_put_text(to, b',"m":'),
                                u8_of(columns, OPEN_USES_MODE)[use[0]])
        out.len = etrace_put_text(to, b"}") - out.data
        use[0] += 1
    return put_text(out, b"]") if use[0] > first else 0


cdef int put_open(Columns columns, const Texts *texts, Buffer *out, u64 i, u64 *change, u64 *use,
                  bint is_first) noexcept nogil:
    cdef u32 path = u32_of(columns, PATHS_STRING)[u32_of(columns, OPENS_PATH)[i]]
    cdef u32 original = u32_of(columns, OPENS_ORIGINAL)[i]
    cdef s64 begin = s64_of(columns, OPENS_OPEN_NS)[i]
    cdef s64 end = s64_of(columns, OPENS_CLOSE_NS)[i]
    cdef s64 until = s64_of(columns, OPENS_UNTIL_NS)[i]
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
    to = etrace_put_decimal(to, u8_of(columns, OPENS_MODE)[i])
    to = put_signed(etrace_put_text(to, b',"s":'), s64_of(columns, OPENS_SIZE)[i])
    out.len = etrace_put_text(to, b"}") - out.data
    return 0


# The parts of each entry that are written, beside its row.
cdef struct Entries:
    Texts texts
    bint is_telling  # of inherited files and last uses
    u64 split_bytes  # of paths that an entry may have; 0: any


cdef inline u64 length_of(Columns columns, u32 string) noexcept nogil:
    return u64_of(columns, STRINGS_START)[string + 1] - u64_of(columns, STRINGS_START)[string]


cdef u64 path_bytes(Columns columns, u64 opened) noexcept nogil:
    cdef u32 path = u32_of(columns, PATHS_STRING)[u32_of(columns, OPENS_PATH)[opened]]
    cdef u32 original = u32_of(columns, OPENS_ORIGINAL)[opened]
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
    cdef u64 first = u64_of(columns, EXECUTIONS_OPENS_START)[row]
    cdef u64 change = find_rows(columns, CHANGES_OPEN, first)
    cdef u64 use = find_rows(columns, OPEN_USES_OPEN, first)
    cdef size_t head_len = out.len - begin
    cdef u64 n_bytes = 0
    cdef s64 n_entries = 1
    cdef u64 i
    for i in range(first, u64_of(columns, EXECUTIONS_OPENS_START)[row + 1]):
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
    cdef bint is_first = True
    cdef s64 value
    cdef char *to
    cdef int i
    if columns.data[USAGE_USER_NS] == NULL or buffer_reserve(out, FIXED_BYTES) < 0:
        return 0 if columns.data[USAGE_USER_NS] == NULL else -1
    to = out.data + out.len
    for i in range(N_USAGE):
        value = s64_of(columns, USAGE_USER_NS + i)[row]
        if value == NONE:
            continue
        to = etrace_put_text(to, b'"a":{"' if is_first else b',"')
        to[0] = USAGE_LETTERS[i]
        to = put_signed(etrace_put_text(to + 1, b'":'), value)
        is_first = False
    out.len = (to if is_first else etrace_put_text(to, b"},")) - out.data
    return 0


cdef int put_status(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef s64 status = s16_of(columns, EXECUTIONS_STATUS)[row]
    if put_text(out, b"],") < 0 or put_usage(columns, out, row) < 0:
        return -1
    if status != NONE and (put_number(out, b'"!":', status) < 0 or put_text(out, b",") < 0):
        return -1
    return put_text(out, b'"o":[')


# Whether the database has inherited files and last uses; those of other tools do not.
cdef bint is_telling(Columns columns, bint by_default) noexcept nogil:
    cdef const s64 *until = s64_of(columns, OPENS_UNTIL_NS)
    cdef size_t i
    for i in range(columns.length[OPENS_UNTIL_NS]):
        if until[i] != NONE:
            return True
    if columns.length[INHERITED_PATH] > 0:
        return True
    return by_default and columns.length[OPENS_UNTIL_NS] == 0


# One execution as an entry, or as several when it is split; returns how many, -1 without memory.
cdef s64 put_entry(Columns columns, const Entries *entries, Buffer *out, u32 row) noexcept nogil:
    cdef const u64 *argv = u64_of(columns, EXECUTIONS_ARGV_START)
    cdef const Texts *texts = &entries.texts
    cdef size_t begin = out.len
    cdef s64 n_entries
    if put_head(columns, texts, out, row) < 0 \
            or put_strings(out, b',"v":[', texts, u32_of(columns, ARGUMENTS_STRING), argv[row],
                           argv[row + 1]) < 0 \
            or put_text(out, b',"c":[') < 0 or put_children(columns, out, row) < 0 \
            or put_links(columns, out, row) < 0 \
            or (entries.is_telling and put_inherited(columns, texts, out, row) < 0) \
            or put_cpus(columns, out, row) < 0 or put_status(columns, out, row) < 0:
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
    cdef size_t n = columns.length[EXECUTIONS_UPID]
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
    `tells_last` tells whether the database has the ends of uses, which no column shows.
    """

    cdef Columns columns
    cdef Entries entries

    def __cinit__(self, Columns columns not None, *, u64 split=0, bint tells_last=True):
        cdef int status
        self.columns = columns
        self.entries.split_bytes = split
        self.entries.is_telling = is_telling(columns, tells_last)
        with nogil:
            status = make_texts(columns, &self.entries.texts)
        if status < 0:
            raise MemoryError

    def __dealloc__(self):
        texts_free(&self.entries.texts)

    @property
    def n_executions(self):
        """How many executions there are."""
        return self.columns.length[EXECUTIONS_UPID]

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
