# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Opens -> how the paths were opened: for reading, writing, or both."""
from libetrace.core.types cimport u8, u32

READS, WRITES = 1, 2


def path_uses(const u32[::1] path, const u8[::1] mode, u32 n_paths):
    """Return a byte for each of `n_paths` paths: READS, WRITES, both, or 0 for none.

    `path` and `mode` are the columns of `opens`. IndexError for a path that does not exist.
    """
    cdef Py_ssize_t i
    cdef u8[::1] uses
    out = bytearray(n_paths + 1)
    uses = out
    if path.shape[0] != mode.shape[0]:
        raise IndexError("columns of different lengths")
    for i in range(path.shape[0]):
        if path[i] >= n_paths:
            raise IndexError(f"path {path[i]} of {n_paths}")
        uses[path[i]] |= 3 if mode[i] & 2 else 1 + (mode[i] & 1)
    return bytes(out[:n_paths])
