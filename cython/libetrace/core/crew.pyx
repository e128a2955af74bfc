# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Runs one function on several threads; the calling thread does none of the work."""
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport ETIMEDOUT
from libc.string cimport memset

from libetrace.core.limits cimport take_limit
from libetrace.core.scan cimport etrace_peek

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_create(pthread_t *thread, void *attributes, void *(*start)(void *) noexcept nogil,
                       void *argument)
    int pthread_join(pthread_t thread, void **result)
    int pthread_mutex_init(pthread_mutex_t *lock, void *attributes)
    int pthread_mutex_lock(pthread_mutex_t *lock)
    int pthread_mutex_unlock(pthread_mutex_t *lock)
    int pthread_cond_init(pthread_cond_t *cond, void *attributes)
    int pthread_cond_signal(pthread_cond_t *cond)
    int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const timespec *until)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    enum: CLOCK_REALTIME
    int clock_gettime(int clock, timespec *now)

cdef enum:
    TICK_NS = 50000000
    NS_PER_SECOND = 1000000000


cdef struct Crew:
    u32 n_busy
    pthread_mutex_t lock
    pthread_cond_t done


# The work of one thread, and the waiter for its end.
cdef struct Errand:
    Work work
    void *argument
    Workload *load
    u32 worker
    Crew *crew
    pthread_t thread


cdef void *run_errand(void *argument) noexcept nogil:
    cdef Errand *errand = <Errand *>argument
    cdef Crew *crew = errand.crew
    if errand.work(errand.argument, errand.worker) < 0:
        errand.load.limit = <u64>take_limit()
        errand.load.failed = 1
    pthread_mutex_lock(&crew.lock)
    crew.n_busy -= 1
    pthread_cond_signal(&crew.done)
    pthread_mutex_unlock(&crew.lock)
    return NULL


# Waits until all are done or a tick is over; whether some are still busy.
cdef bint wait_a_tick(Crew *crew) noexcept nogil:
    cdef timespec until
    cdef bint is_busy
    clock_gettime(CLOCK_REALTIME, &until)
    until.tv_nsec += TICK_NS
    if until.tv_nsec >= NS_PER_SECOND:
        until.tv_nsec -= NS_PER_SECOND
        until.tv_sec += 1
    pthread_mutex_lock(&crew.lock)
    while crew.n_busy:
        if pthread_cond_timedwait(&crew.done, &crew.lock, &until) == ETIMEDOUT:
            break
    is_busy = crew.n_busy > 0
    pthread_mutex_unlock(&crew.lock)
    return is_busy


# Starts a thread for each errand; returns how many have started.
cdef u32 start_crew(Crew *crew, Errand *errands, u32 n) noexcept nogil:
    cdef u32 i
    crew.n_busy = n
    for i in range(n):
        if pthread_create(&errands[i].thread, NULL, run_errand, &errands[i]) != 0:
            errands[i].load.failed = 1
            pthread_mutex_lock(&crew.lock)
            crew.n_busy -= n - i
            pthread_mutex_unlock(&crew.lock)
            return i
    return n


# Waits for the threads; returns the exception of a signal handler or `progress`, or None.
cdef object watch(Crew *crew, Workload *load, progress):
    cdef bint is_busy = True
    error = None
    while is_busy:
        with nogil:
            is_busy = wait_a_tick(crew)
        try:
            PyErr_CheckSignals()
            if progress is not None:
                progress(etrace_peek(&load.done), load.total)
        except BaseException as raised:
            error = raised
            load.cancelled = 1
    return error


cdef int run_crew(Work work, void *argument, Workload *load, u32 n_threads, progress) except -1:
    cdef Crew crew
    cdef Errand errands[MAX_THREADS]
    cdef u32 n
    cdef u32 i
    memset(&crew, 0, sizeof(crew))
    pthread_mutex_init(&crew.lock, NULL)
    pthread_cond_init(&crew.done, NULL)
    for i in range(n_threads):
        errands[i].work = work
        errands[i].argument = argument
        errands[i].load = load
        errands[i].worker = i
        errands[i].crew = &crew
    load.taken = 0
    n = start_crew(&crew, errands, n_threads)
    error = watch(&crew, load, progress)
    for i in range(n):
        pthread_join(errands[i].thread, NULL)
    if error is not None:
        raise error
    return 0
