# SPDX-License-Identifier: Apache-2.0
# Tables `environment` and `mounts` as JSON texts.
from libetrace.image.columns cimport Columns
from libetrace.convert.value_text cimport Texts
from libetrace.core.memory cimport Buffer

# {"NAME=value":[upid,..],..}, a variable a line
cdef int put_environment(Columns columns, const Texts *texts, Buffer *out) noexcept nogil
# [{"p":upid,"x":index,"t":time,"k":"mount",..},..], one a line
cdef int put_mounts(Columns columns, const Texts *texts, Buffer *out) noexcept nogil
