# SPDX-License-Identifier: Apache-2.0
# Which open has the facts of its path in JSON.
from libetrace.core.types cimport u32, u64
from libetrace.image.columns cimport Columns


# Whether an open reports in JSON whether its path exists, by keys of its own: the first of a path that exists
# and that is nowhere opened by its own name.
cdef inline bint reports_path(Columns columns, u64 open) noexcept nogil:
    cdef u32 path = columns.opens_path.at[open]
    cdef u64 first
    cdef u64 i
    if not columns.paths_mode.at[path] or path + 1 >= columns.paths_opens_start.n:
        return False
    first = columns.paths_opens_start.at[path]
    if first >= columns.path_opens_open.n or columns.path_opens_open.at[first] != open:
        return False
    for i in range(first, min(columns.paths_opens_start.at[path + 1], columns.path_opens_open.n)):
        if columns.opens_original.at[columns.path_opens_open.at[i]] == columns.paths_string.at[path]:
            return False
    return True
