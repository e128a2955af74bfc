# SPDX-License-Identifier: Apache-2.0
# What lies beside the executions of a database: the environment and the mounts.
from libetrace.convert.json_values cimport Reading

cdef int read_environment(Reading *reading) noexcept nogil
cdef int read_mounts(Reading *reading) noexcept nogil
