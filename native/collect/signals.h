/* SPDX-License-Identifier: Apache-2.0 */
/* The request to end, and waits that it interrupts. */
#ifndef ETRACE_COLLECT_SIGNALS_H
#define ETRACE_COLLECT_SIGNALS_H

#include <poll.h>
#include <signal.h>

#include "collect.h"

#define WAIT_FOREVER UINT64_MAX

/*
 * The first SIGINT or SIGTERM is the request to end after what was written before. A later one
 * ends the program at once, wherever it is.
 */
void signals_init(void);

extern volatile sig_atomic_t stop_requested;

/*
 * Sleep until a descriptor is ready, the time has passed or the request comes, also when it came
 * since the caller saw `seen` in stop_requested: as poll().
 */
int signals_wait(struct pollfd *fds, nfds_t n, u64 timeout_ns, bool seen);

#endif /* ETRACE_COLLECT_SIGNALS_H */
