# SPDX-License-Identifier: Apache-2.0
# The kinds of changes in `.nfsdb.json`: kind K (descriptors.pxd) is the letter CHANGE_LETTERS[K - 1].
cdef extern from *:
    """
    static const char CHANGE_LETTERS[] = "erlsgf";
    """
    const char *CHANGE_LETTERS

cdef enum:
    N_CHANGES = 6
