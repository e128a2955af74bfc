# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Tables of an image -> the Arrow C data interface, without a copy.

A table is a struct array (a record batch). A column `X.start` has one element more than the table has
rows: it becomes two columns over the same memory, `X_start` and, one element further on, `X_end`.
The table of strings becomes one column `text` of large binaries: Arrow lays them out just so. What
row numbers mean, unit and meaning, are the metadata of each field. -1 (no row) stays -1: no column
has a validity bitmap. The memory of a column is held until the consumer releases it.

Source: the Arrow C data and C stream interfaces and their PyCapsule interface, as of Arrow 1.4.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.errno cimport ENOMEM
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

cdef struct ArrowSchema:
    const char *format
    const char *name
    const char *metadata
    int64_t flags
    int64_t n_children
    ArrowSchema **children
    ArrowSchema *dictionary
    void (*release)(ArrowSchema *) noexcept
    void *private_data

cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void **buffers
    ArrowArray **children
    ArrowArray *dictionary
    void (*release)(ArrowArray *) noexcept
    void *private_data

cdef struct ArrowArrayStream:
    int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept
    int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept
    const char *(*get_last_error)(ArrowArrayStream *) noexcept
    void (*release)(ArrowArrayStream *) noexcept
    void *private_data

cdef enum:
    MAX_BUFFERS = 3


# What keeps the memory of a column, until its array is released.
cdef struct Held:
    const void *buffers[MAX_BUFFERS]
    Py_buffer views[MAX_BUFFERS]
    int n_views


cdef struct Stream:
    PyObject *table
    bint is_read


#: dtype of a column -> Arrow's format
FORMATS = {"<u8": b"L", "<i8": b"l", "<u4": b"I", "<i4": b"i", "<u2": b"S", "<i2": b"s",
           "|u1": b"C", "|i1": b"c"}
LARGE_BINARY = b"Z"
STRUCT = b"+s"


def fields_of(table):
    """List the Arrow columns of a table: (name, format, metadata, names of its buffers, offset)."""
    if "bytes" in table.columns and "start" in table.columns:
        meaning = table.infos["bytes"].meaning
        return [("text", LARGE_BINARY, {"meaning": meaning}, ("start", "bytes"), 0)]
    fields = []
    for name, info in table.infos.items():
        metadata = {key: value for key, value in
                (("unit", info.unit), ("meaning", info.meaning)) if value}
        format = FORMATS[info.dtype]
        if name.endswith(".start"):
            stem = name.removesuffix(".start")
            fields.append((f"{stem}_start", format, metadata, (name,), 0))
            fields.append((f"{stem}_end", format, metadata, (name,), 1))
        else:
            fields.append((name, format, metadata, (name,), 0))
    return fields


# ---- schema ----


cdef char *copy_bytes(bytes data) except NULL:
    cdef Py_ssize_t n = len(data)
    cdef char *copy = <char *>PyMem_RawMalloc(n + 1)
    if copy == NULL:
        raise MemoryError
    memcpy(copy, <const char *>data, n + 1)
    return copy


cdef bytes pack_metadata(dict metadata):
    packed = len(metadata).to_bytes(sizeof(int32_t), "little")
    for key, value in metadata.items():
        for text in (key.encode(), value.encode()):
            packed += len(text).to_bytes(sizeof(int32_t), "little") + text
    return packed


cdef void release_schema(ArrowSchema *schema) noexcept:
    cdef int64_t i
    for i in range(schema.n_children):
        if schema.children[i] != NULL and schema.children[i].release != NULL:
            schema.children[i].release(schema.children[i])
        PyMem_RawFree(schema.children[i])
    PyMem_RawFree(schema.children)
    PyMem_RawFree(<void *>schema.format)
    PyMem_RawFree(<void *>schema.name)
    PyMem_RawFree(<void *>schema.metadata)
    schema.release = NULL


cdef int fill_schema(ArrowSchema *schema, str name, bytes format, dict metadata) except -1:
    schema.release = release_schema
    schema.format = copy_bytes(format)
    schema.name = copy_bytes(name.encode())
    if metadata:
        schema.metadata = copy_bytes(pack_metadata(metadata))
    return 0


cdef int fill_children(ArrowSchema *schema, list fields) except -1:
    cdef Py_ssize_t i
    schema.children = <ArrowSchema **>PyMem_RawCalloc(max(len(fields), 1), sizeof(ArrowSchema *))
    if schema.children == NULL:
        raise MemoryError
    schema.n_children = len(fields)
    for i, (name, format, metadata, _, _) in enumerate(fields):
        schema.children[i] = <ArrowSchema *>PyMem_RawCalloc(1, sizeof(ArrowSchema))
        if schema.children[i] == NULL:
            raise MemoryError
        fill_schema(schema.children[i], name, format, metadata)
    return 0


# Describes a table; `schema` is zeroed. After an error nothing is left to be released.
cdef int export_schema(table, ArrowSchema *schema) except -1:
    try:
        fill_schema(schema, table.name, STRUCT, {})
        fill_children(schema, fields_of(table))
    except BaseException:
        if schema.release != NULL:
            schema.release(schema)
        raise
    return 0


# ---- array ----


cdef void release_column(ArrowArray *array) noexcept with gil:
    cdef Held *held = <Held *>array.private_data
    cdef int i
    for i in range(held.n_views):
        PyBuffer_Release(&held.views[i])
    PyMem_RawFree(held)
    array.release = NULL


cdef void release_struct(ArrowArray *array) noexcept:
    cdef int64_t i
    for i in range(array.n_children):
        if array.children[i] != NULL and array.children[i].release != NULL:
            array.children[i].release(array.children[i])
        PyMem_RawFree(array.children[i])
    PyMem_RawFree(array.children)
    PyMem_RawFree(array.buffers)
    array.release = NULL


# Whether offsets of strings stay inside the strings; users of the column do not check.
cdef bint offsets_fit(const Held *held, int64_t n) noexcept nogil:
    cdef const uint64_t *offsets = <const uint64_t *>held.views[0].buf
    cdef int64_t i
    for i in range(n):
        if offsets[i] > offsets[i + 1]:
            return False
    return offsets[n] <= <uint64_t>held.views[1].len


# One column: its buffers after that of validity, which it does not have.
cdef int fill_column(ArrowArray *array, table, tuple names, int64_t offset) except -1:
    cdef Held *held = <Held *>PyMem_RawCalloc(1, sizeof(Held))
    if held == NULL:
        raise MemoryError
    array.private_data = held
    array.release = release_column
    array.buffers = held.buffers
    array.n_buffers = 1 + len(names)
    array.length = table.n_rows
    array.offset = offset
    for name in names:
        # lengths are right in a table of an open image (image.header); it may be made by hand
        if name != "bytes" and len(table.columns[name]) < table.n_rows + max(offset, len(names) - 1):
            raise ValueError(f"{table.name}.{name} is shorter than its table")
        PyObject_GetBuffer(table.columns[name], &held.views[held.n_views], PyBUF_SIMPLE)
        held.buffers[1 + held.n_views] = held.views[held.n_views].buf
        held.n_views += 1
    if held.n_views == 2 and not offsets_fit(held, table.n_rows):
        raise ValueError(f"offsets of {table.name} are damaged")
    return 0


cdef int fill_columns(ArrowArray *array, table, list fields) except -1:
    cdef Py_ssize_t i
    array.buffers = <const void **>PyMem_RawCalloc(1, sizeof(void *))
    array.children = <ArrowArray **>PyMem_RawCalloc(max(len(fields), 1), sizeof(ArrowArray *))
    if array.buffers == NULL or array.children == NULL:
        raise MemoryError
    array.n_buffers = 1
    array.n_children = len(fields)
    for i, (_, _, _, names, offset) in enumerate(fields):
        array.children[i] = <ArrowArray *>PyMem_RawCalloc(1, sizeof(ArrowArray))
        if array.children[i] == NULL:
            raise MemoryError
        fill_column(array.children[i], table, names, offset)
    return 0


# The rows of a table; `array` is zeroed. After an error nothing is left to be released.
cdef int export_array(table, ArrowArray *array) except -1:
    array.length = table.n_rows
    array.release = release_struct
    try:
        fill_columns(array, table, fields_of(table))
    except BaseException:
        array.release(array)
        raise
    return 0


# ---- stream: one batch ----


cdef int stream_schema(ArrowArrayStream *stream, ArrowSchema *schema) noexcept with gil:
    try:
        memset(schema, 0, sizeof(ArrowSchema))
        export_schema(<object>(<Stream *>stream.private_data).table, schema)
    except BaseException:
        return ENOMEM
    return 0


cdef int stream_next(ArrowArrayStream *stream, ArrowArray *array) noexcept with gil:
    cdef Stream *own = <Stream *>stream.private_data
    try:
        memset(array, 0, sizeof(ArrowArray))
        if not own.is_read:
            export_array(<object>own.table, array)
            own.is_read = True
    except BaseException:
        return ENOMEM
    return 0


cdef const char *stream_error(ArrowArrayStream *stream) noexcept:
    return NULL


cdef void release_stream(ArrowArrayStream *stream) noexcept with gil:
    cdef Stream *own = <Stream *>stream.private_data
    Py_DECREF(<object>own.table)
    PyMem_RawFree(own)
    stream.release = NULL


# ---- capsules ----


cdef void free_schema(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *>PyCapsule_GetPointer(capsule, b"arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    PyMem_RawFree(schema)


cdef void free_array(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(capsule, b"arrow_array")
    if array.release != NULL:
        array.release(array)
    PyMem_RawFree(array)


cdef void free_stream(object capsule) noexcept:
    cdef ArrowArrayStream *stream = <ArrowArrayStream *>PyCapsule_GetPointer(
        capsule, b"arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    PyMem_RawFree(stream)


def schema_capsule(table):
    """Return what `__arrow_c_schema__` of a table of an image returns."""
    cdef ArrowSchema *schema = <ArrowSchema *>PyMem_RawCalloc(1, sizeof(ArrowSchema))
    if schema == NULL:
        raise MemoryError
    capsule = PyCapsule_New(schema, b"arrow_schema", free_schema)
    export_schema(table, schema)
    return capsule


def array_capsules(table):
    """Return what `__arrow_c_array__` of a table of an image returns: schema and array."""
    cdef ArrowArray *array = <ArrowArray *>PyMem_RawCalloc(1, sizeof(ArrowArray))
    if array == NULL:
        raise MemoryError
    capsule = PyCapsule_New(array, b"arrow_array", free_array)
    export_array(table, array)
    return schema_capsule(table), capsule


def stream_capsule(table):
    """Return what `__arrow_c_stream__` of a table of an image returns: one batch."""
    cdef ArrowArrayStream *stream = <ArrowArrayStream *>PyMem_RawCalloc(
        1, sizeof(ArrowArrayStream))
    cdef Stream *own = <Stream *>PyMem_RawCalloc(1, sizeof(Stream))
    if stream == NULL or own == NULL:
        PyMem_RawFree(stream)
        PyMem_RawFree(own)
        raise MemoryError
    Py_INCREF(table)
    own.table = <PyObject *>table
    stream.private_data = own
    stream.get_schema = stream_schema
    stream.get_next = stream_next
    stream.get_last_error = stream_error
    stream.release = release_stream
    return PyCapsule_New(stream, b"arrow_array_stream", free_stream)
