# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Runs one function on several threads; the calling thread does none of the work."""
from cpython.exc cimport PyErr_CheckSignals
from libetrace.core.limits cimport take_limit
from libetrace.core.scan cimport etrace_peek

from _thread import start_new_thread
from _queue import Empty, SimpleQueue  # the part in C: `queue` would import threading

TICK_SECONDS = 0.05


# The work of one thread, and who waits for its end.
cdef class Errand:
    cdef Work work
    cdef void *argument
    cdef Workload *load
    cdef u32 worker
    cdef object done

    def run(self):
        with nogil:
            if self.work(self.argument, self.worker) < 0:
                self.load.limit = <u64>take_limit()
                self.load.failed = 1
        self.done.put(None)


# Starts the threads; returns how many have started. No signal handler runs meanwhile: start_new_thread
# is atomic.
cdef int start_crew(Work work, void *argument, Workload *load, u32 n_threads, done) except -1:
    cdef Errand errand
    cdef u32 i
    for i in range(n_threads):
        errand = Errand.__new__(Errand)
        errand.work, errand.argument, errand.load = work, argument, load
        errand.worker, errand.done = i, done
        try:
            start_new_thread(errand.run, ())
        except RuntimeError:  # too many threads
            load.failed = 1
            return i
    return n_threads


cdef int run_crew(Work work, void *argument, Workload *load, u32 n_threads, progress) except -1:
    cdef int n_busy
    error = None
    done = SimpleQueue()
    load.taken = 0
    n_busy = start_crew(work, argument, load, n_threads, done)
    while n_busy:
        try:
            try:
                done.get(timeout=TICK_SECONDS)
                n_busy -= 1
            except Empty:
                pass
            PyErr_CheckSignals()  # of a signal that came before get() waited: no bytecode is run here
            if progress is not None:
                progress(etrace_peek(&load.done), load.total)
        except BaseException as raised:  # of a signal handler or `progress`: the threads end first
            error = raised
            load.cancelled = 1
    if error is not None:
        raise error
    return 0
