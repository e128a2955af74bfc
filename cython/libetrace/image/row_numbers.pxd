# SPDX-License-Identifier: Apache-2.0
# Numbers of names and references of a draft -> rows of its tables. -1 when there is no memory.
from libetrace.image.column_builder cimport Draft

cdef int settle(Draft *draft) noexcept nogil
