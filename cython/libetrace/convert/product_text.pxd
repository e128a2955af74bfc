# SPDX-License-Identifier: Apache-2.0
# What `cas pp` says of an execution, as keys of its entry.
from libetrace.image.columns cimport Columns
from libetrace.convert.value_text cimport Texts
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u32

# The keys n, m, d, l and t of an execution, those that the image has.
cdef int put_products(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil
