# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Collects the problems of a log in a bounded list. Names are the values of `NAMES`."""
from libetrace.core.memory cimport buffer_add, buffer_free

#: by number; a reader shows them with words of its own
NAMES = (
    "unknown-kind", "unknown-action", "negative-size", "record-cut-off", "garbage", "junk-between",
    "buffer-cut-off", "no-new-buffer", "no-end-of-buffer", "empty-preamble", "unknown-record-type",
    "stray-argument", "trailing-bytes", "buffer-too-long", "no-buffer-size",
    "buffer-too-short", "buffer-inside", "no-extents", "stray-preamble",
)


cdef void problem_add(Problems *problems, int kind, u64 offset, u64 skipped_bytes, u32 number) noexcept nogil:
    cdef Problem problem
    problem.offset = offset
    problem.skipped_bytes = skipped_bytes
    problem.kind = kind
    problem.number = number
    problems.n_problems += 1
    problems.n_skipped_bytes += skipped_bytes
    if problems.kept.len < MAX_PROBLEMS * sizeof(Problem):
        buffer_add(&problems.kept, &problem, sizeof(problem))  # without memory it is only counted


cdef void problems_free(Problems *problems) noexcept nogil:
    buffer_free(&problems.kept)


cdef list problems_list(const Problems *problems):
    """Return (name, offset, skipped bytes, number) of those that were kept, by offset."""
    cdef size_t i
    cdef const Problem *at = <const Problem *>problems.kept.data
    found = [
        (NAMES[at[i].kind], at[i].offset, at[i].skipped_bytes, at[i].number)
        for i in range(problems.kept.len // sizeof(Problem))
    ]
    return sorted(found, key=lambda problem: problem[1])
