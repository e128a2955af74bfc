# SPDX-License-Identifier: Apache-2.0
"""File access traces for tests: an example, and any."""

from __future__ import annotations

from hypothesis import strategies as st

from etrace.imports.access_trace import names
from etrace.imports.access_trace.model import (
    AccessTrace,
    Attributes,
    Correlation,
    Operation,
    Process,
)

#: after the example of BuildXL's own document, with three of its operations
SEED = rb"""1
4
5=Process
3=GetFileAttributes
29=NtCreateFile
6=FindFirstFileEx
3
1=Read
4=Probe
8=Enumerate
1
16592,"C:\hello.exe",29120,637989104119349710,637989104120394770,0
C:\hello.exe XYZ
2
268435457=B:\
268435474=C:\hello.exe
2
35=B:\Out\a,b=c
76=B:\Out
4
0,16592,268435474,,5,1,0,0,
1,16592,268435457,,3,4,0,0,
73,16592,,35,29,1,0,0,
134,16592,,76,6,8,0,0,*,?
"""
U32 = st.integers(0, 2**32 - 1)
TEXT = st.binary(max_size=12).map(lambda text: text.replace(b"\n", b".").replace(b"\r", b"."))


@st.composite
def traces(draw: st.DrawFn) -> AccessTrace:
    """Draw a trace of any version and numbering."""
    version = draw(st.sampled_from([1, 2, 3]))
    block = st.dictionaries(U32, TEXT, min_size=1, max_size=4)
    known = st.sampled_from(sorted(names.OPERATIONS)) | TEXT
    masks = st.integers(0, 31).map(names.access_name) | TEXT
    operations = st.dictionaries(U32, known, min_size=1, max_size=6)
    accesses = st.dictionaries(U32, masks, min_size=1, max_size=4)
    trace = AccessTrace(version, draw(operations), draw(accesses))
    trace.manifest = dict(sorted(draw(block).items()))
    trace.paths = draw(block) if version == 1 and draw(st.booleans()) else {}
    pids = st.integers(1, 4) | U32
    process = st.builds(Process, pids, TEXT, pids, U32, U32, st.integers(-(2**31), 2**32 - 1), TEXT)
    trace.processes = draw(st.lists(process, max_size=3))
    for number in range(draw(st.integers(0, 8))):
        is_second = bool(trace.paths) and draw(st.booleans())
        path = draw(st.sampled_from(sorted(trace.paths if is_second else trace.manifest)))
        first, second = (None, path) if is_second else (path, None)
        operation = draw(st.sampled_from(sorted(trace.operations)))
        access = draw(st.sampled_from(sorted(trace.accesses)))
        trace.events.append(
            Operation(
                number, draw(pids), first, second, operation, access, draw(U32),
                draw(st.booleans()), draw(TEXT),
            )
        )  # fmt: skip
        if version > 1:
            trace.correlations.append(Correlation(number, draw(U32), draw(U32)))
        if version > 2:
            trace.attributes.append(Attributes(number, draw(U32), draw(U32)))
    return trace
