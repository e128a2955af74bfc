# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Problems of a trace, aggregated: millions of broken lines make a few lines of report."""


cdef u64 lines_held(const Report *report, int problem) noexcept nogil:
    cdef u64 n = 0
    while n < N_PROBLEM_LINES and report.lines[problem][n]:
        n += 1
    return n


# Line numbers start at 1; 0 marks a free place. Keeps the smallest ones in order.
cdef void keep_line(Report *report, int problem, u64 line) noexcept nogil:
    cdef u64 at = lines_held(report, problem)
    if at == N_PROBLEM_LINES:
        at -= 1
        if report.lines[problem][at] <= line:
            return
    while at and report.lines[problem][at - 1] > line:
        report.lines[problem][at] = report.lines[problem][at - 1]
        at -= 1
    report.lines[problem][at] = line


cdef void report_add(Report *report, int problem, u64 line, u64 count) noexcept nogil:
    report.count[problem] += count
    if line:
        keep_line(report, problem, line)


cdef void report_merge(Report *into, const Report *other, u64 first_line) noexcept nogil:
    cdef int problem
    cdef u64 i
    for problem in range(N_PROBLEMS):
        into.count[problem] += other.count[problem]
        for i in range(lines_held(other, problem)):
            keep_line(into, problem, other.lines[problem][i] + first_line)
