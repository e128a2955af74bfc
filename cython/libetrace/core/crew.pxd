# SPDX-License-Identifier: Apache-2.0
# Threads that share one piece of work; the calling thread waits, reports progress and lets Ctrl-C through.
from libetrace.core.types cimport u32, u64

cdef enum:
    MAX_THREADS = 64


# The data that the threads share with each other and with the thread that waits for them.
cdef struct Workload:
    u64 taken  # pieces of the work that some thread has taken
    u64 done  # of `total`, for progress()
    u64 total
    u64 failed  # a thread has given up
    u64 limit  # that it has passed, if any
    u64 cancelled  # all threads are to end


# What each thread does until nothing is left to take; -1: it failed.
ctypedef int (*Work)(void *argument, u32 worker) noexcept nogil

# Runs `work` on `n_threads`; raises what signal handlers and `progress` raise, after the threads ended.
cdef int run_crew(Work work, void *argument, Workload *load, u32 n_threads, progress) except -1
