# SPDX-License-Identifier: Apache-2.0
from libetrace.xray.expander cimport Calls

# All columns as (name, format, bytes); calls that were left out are gone from `calls` afterwards.
cdef list call_columns(Calls *calls)
