// SPDX-License-Identifier: Apache-2.0
/*
 * SIGINT and SIGTERM. They are open everywhere, so that a second one ends a collector that hangs in
 * a write() or reads without an end; only between a look at the request and the sleep that it must
 * interrupt they are blocked.
 */
#include "collect.h"

#include <errno.h>
#include <time.h>

#define SECOND_NS 1000000000u
/* timeout(1) and some shells signal the process and then its group: that is one request. */
#define REPEAT_NS 100000000u

volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
	static volatile u64 first_ns;
	int saved = errno;

	if (!stop_requested) {
		first_ns = monotonic_ns();
		stop_requested = 1;
	} else if (monotonic_ns() - first_ns > REPEAT_NS) {
		signal(number, SIG_DFL);
		raise(number); /* delivered when this handler returns */
	}
	errno = saved;
}

static sigset_t both(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

/* Without SA_RESTART: a write() that waits for its reader comes back and can say so. */
void stop_init(void)
{
	struct sigaction end = { .sa_handler = on_signal, .sa_mask = both() };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set = both();

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* our parent may have blocked them */
}

int stop_wait(struct pollfd *fds, nfds_t n, u64 timeout_ns, bool seen)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / SECOND_NS),
				    .tv_nsec = (long)(timeout_ns % SECOND_NS) };
	sigset_t blocked = both(), before;
	int ready = -1;

	sigprocmask(SIG_BLOCK, &blocked, &before);
	if (seen || !stop_requested)
		ready = ppoll(fds, n, timeout_ns == WAIT_FOREVER ? NULL : &timeout, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ready;
}
