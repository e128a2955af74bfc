# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""`.nfsdb.json`, environment and mounts -> the columns of a database image."""
from libc.string cimport memcmp, memset

from libetrace.convert.executions cimport read_executions
from libetrace.convert.json_values cimport (
    MAX_INDEX, Reading, column, no_memory, read_list, read_name, read_time,
)
from libetrace.core.json_text cimport (
    Scanner, fail, scan_end, scan_key, scan_more, scan_number, scan_open, scan_string,
    scan_unsigned, scanner_free, scanner_init, skip_value,
)
from libetrace.core.types cimport INT64_MAX, s32, s64, u8, u64
from libetrace.image.column_builder cimport (
    NONE, Draft, Reference, add8, add32, add64, add_reference, draft_free, draft_init, draft_name,
    make_column,
)
from libetrace.image.row_numbers cimport settle
from libetrace.image.schema cimport (
    ENVIRONMENT_STRING, ENVIRONMENT_UPID, MOUNTS_FLAGS, MOUNTS_KIND, MOUNTS_OK, MOUNTS_SOURCE,
    MOUNTS_TARGET, MOUNTS_TIME_NS, MOUNTS_TYPE, N_COLUMNS,
)
from libetrace.trace.source cimport Source

from libetrace.image.header import group_names


# ---- environment and mounts ----


cdef int add_variable(Reading *reading, s64 name) noexcept nogil:
    cdef bint is_first = True
    cdef int status
    cdef s64 upid
    if scan_open(&reading.scanner, c'[') < 0:
        return -1
    while True:
        status = scan_more(&reading.scanner, c']', is_first)
        if status <= 0:
            return status
        is_first = False
        if scan_number(&reading.scanner, 0, INT64_MAX, &upid) < 0:
            return -1
        if add64(column(reading, ENVIRONMENT_UPID), upid) < 0 \
                or add32(column(reading, ENVIRONMENT_STRING), <s32>name) < 0:
            return no_memory(reading)


# {"NAME=value":[upid,..],..}
cdef int read_environment(Reading *reading) noexcept nogil:
    cdef bint is_first = True
    cdef const char *bytes
    cdef size_t len
    cdef int status
    cdef s64 name
    if scan_open(&reading.scanner, c'{') < 0:
        return -1
    while True:
        status = scan_more(&reading.scanner, c'}', is_first)
        if status < 0:
            return -1
        if status == 0:
            return scan_end(&reading.scanner)
        is_first = False
        reading.entry += 1
        if scan_key(&reading.scanner, &bytes, &len) < 0:
            return -1
        name = draft_name(reading.draft, bytes, len)
        if name < 0:
            return no_memory(reading)
        if add_variable(reading, name) < 0:
            return -1


cdef struct MountEntry:
    Reference mounter
    s64 time
    s64 kind
    s64 source
    s64 target
    s64 type
    u64 flags
    s64 ok


cdef bint is_text(const char *bytes, size_t len, const char *text, size_t text_len) noexcept nogil:
    return len == text_len and not memcmp(bytes, text, len)


cdef int read_kind(Reading *reading, s64 *kind) noexcept nogil:
    cdef const char *bytes
    cdef size_t len
    if scan_string(&reading.scanner, &bytes, &len) < 0:
        return -1
    if is_text(bytes, len, b"mount", 5):
        kind[0] = 0
    elif is_text(bytes, len, b"umount", 6):
        kind[0] = 1
    else:
        return fail(&reading.scanner, b"neither mount nor umount")
    return 0


cdef int read_mount_value(Reading *reading, const char *key, size_t len,
                          MountEntry *mount) noexcept nogil:
    cdef Scanner *scanner = &reading.scanner
    cdef s64 *name = NULL
    if is_text(key, len, b"p", 1):
        return scan_number(scanner, NONE, INT64_MAX, &mount.mounter.upid)
    if is_text(key, len, b"x", 1):
        return scan_number(scanner, 0, MAX_INDEX, &mount.mounter.index)
    if is_text(key, len, b"t", 1):
        return read_time(reading, &mount.time)
    if is_text(key, len, b"k", 1):
        return read_kind(reading, &mount.kind)
    if is_text(key, len, b"flags", 5):
        return scan_unsigned(scanner, &mount.flags)
    if is_text(key, len, b"ok", 2):
        return scan_number(scanner, 0, 1, &mount.ok)
    if is_text(key, len, b"source", 6):
        name = &mount.source
    elif is_text(key, len, b"target", 6):
        name = &mount.target
    elif is_text(key, len, b"type", 4):
        name = &mount.type
    else:
        return skip_value(scanner)
    name[0] = read_name(reading)
    return 0 if name[0] >= 0 else -1


cdef int add_mount(Reading *reading, const MountEntry *mount) noexcept nogil:
    if add_reference(&reading.draft.mounters, mount.mounter) < 0 \
            or add64(column(reading, MOUNTS_TIME_NS), mount.time) < 0 \
            or add8(column(reading, MOUNTS_KIND), <u8>mount.kind) < 0 \
            or add32(column(reading, MOUNTS_SOURCE), <s32>mount.source) < 0 \
            or add32(column(reading, MOUNTS_TARGET), <s32>mount.target) < 0 \
            or add32(column(reading, MOUNTS_TYPE), <s32>mount.type) < 0 \
            or add64(column(reading, MOUNTS_FLAGS), <s64>mount.flags) < 0 \
            or add8(column(reading, MOUNTS_OK), <u8>mount.ok) < 0:
        return no_memory(reading)
    return 0


cdef int read_mount(Reading *reading) noexcept nogil:
    cdef bint is_first = True
    cdef const char *key
    cdef size_t len
    cdef int status
    cdef MountEntry mount
    memset(&mount, 0, sizeof(mount))
    mount.mounter.upid = mount.kind = mount.source = mount.target = mount.type = NONE
    mount.ok = 1
    reading.entry += 1
    if scan_open(&reading.scanner, c'{') < 0:
        return -1
    while True:
        status = scan_more(&reading.scanner, c'}', is_first)
        if status <= 0:
            break
        is_first = False
        if scan_key(&reading.scanner, &key, &len) < 0 \
                or read_mount_value(reading, key, len, &mount) < 0:
            return -1
    if status < 0:
        return -1
    if mount.kind < 0:
        return fail(&reading.scanner, b"a mount without k")
    return add_mount(reading, &mount)


cdef int read_mounts(Reading *reading) noexcept nogil:
    if read_list(reading, read_mount) < 0:
        return -1
    return scan_end(&reading.scanner)


# ---- all of it ----


class JsonError(Exception):
    """The text is not a database; `message` has the place and the error, `byte` the offset."""

    def __init__(self, message, byte):
        super().__init__(message)
        self.message = message
        self.byte = byte


cdef str describe(const Reading *reading):
    where = f"byte {reading.scanner.at - reading.begin}"
    if reading.entry >= 0:
        where = f"entry {reading.entry}, {where}"
    if reading.key:
        where += f', in "{chr(reading.key)}"'
    if reading.inner:
        where += f', "{chr(reading.inner)}"'
    return f"{where}: {(<bytes>reading.scanner.error).decode()}"


ctypedef int (*read_text)(Reading *reading) noexcept nogil


cdef class Importer:
    """Reads the texts of one database; `columns()` ends it."""

    cdef Draft draft
    cdef bint is_settled
    cdef readonly u64 n_unknown

    def __cinit__(self):
        if draft_init(&self.draft) < 0:
            raise MemoryError

    def __dealloc__(self):
        draft_free(&self.draft)

    cdef int read(self, Source source, read_text read) except -1:
        cdef Reading reading
        cdef int status
        memset(&reading, 0, sizeof(reading))
        reading.draft = &self.draft
        reading.begin = source.data
        reading.entry = NONE
        scanner_init(&reading.scanner, source.data, source.size)
        try:
            with nogil:
                status = read(&reading)
            if status < 0:
                raise JsonError(describe(&reading), reading.scanner.at - reading.begin)
            self.n_unknown += reading.n_unknown
        finally:
            scanner_free(&reading.scanner)
        return 0

    def read_entries(self, Source source not None):
        """Read the executions; comes first. JsonError."""
        self.read(source, read_executions)

    def read_environment(self, Source source not None):
        """Read `.nfsdb.env.json`. JsonError."""
        self.read(source, read_environment)

    def read_mounts(self, Source source not None):
        """Read `.nfsdb.mounts.json`. JsonError."""
        self.read(source, read_mounts)

    @property
    def attributes(self):
        """Attributes of the image: how many keys were skipped; whether opens have ends of uses."""
        return {"unknown_keys": self.n_unknown, "tells_last": bool(self.draft.has_last_uses)}

    @property
    def products(self):
        """Names of the product tables that some execution says something of."""
        names = set()
        if self.draft.n_pattern_bytes > 0:
            names |= {"patterns", "pattern_bits"}
        if self.draft.has_usage:
            names.add("usage")
        if self.draft.has_written:
            names.add("written")
        if self.draft.has_uses:
            names.add("open_uses")
        if self.draft.has_fork_times:
            names.add("fork_times")
        if self.draft.has_wrappers:
            names.add("wrappers")
        if self.draft.has_links:
            names.add("linked")
        if self.draft.has_compilations:
            names.update(group_names("compilations"))
        return frozenset(names)

    def columns(self):
        """Return the columns of all tables, in the order of the schema; can be called once.

        Columns of products that are not in `products` are empty.
        """
        cdef int status
        cdef int i
        if self.is_settled:
            raise ValueError("the columns were taken already")
        self.is_settled = True
        with nogil:
            status = settle(&self.draft)
        if status < 0:
            raise MemoryError
        return [make_column(&self.draft.columns[i]) for i in range(N_COLUMNS)]
