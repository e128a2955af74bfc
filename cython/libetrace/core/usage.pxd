# SPDX-License-Identifier: Apache-2.0
# The columns of the table `usage`, in their order, as keys in JSON.
cdef enum:
    N_USAGE = 7
    MAX_RSS = 2  # the one that is no sum

cdef extern from *:
    """
    static const char etrace_usage_letters[] = "usmrwvf";
    """
    const char *USAGE_LETTERS "etrace_usage_letters"
