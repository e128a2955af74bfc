// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Calls that a signal interrupts: what fails with EINTR prints nothing, what is begun again prints
 * once, and what the handler does comes in between.
 */
#include "expect.h"

#include <sys/mman.h>
#include <sys/time.h>

static const struct task *self_task;
static volatile sig_atomic_t *n_signals; /* of the parent; the child sees it too */

static void handler(int signal_number)
{
	int saved = errno;
	long fd;

	(void)signal_number;
	fd = MUST(open("/dev/null", O_RDONLY));
	expect_open(self_task, "/dev/null", "/dev/null", O_RDONLY, 0, fd);
	MUST(close((int)fd));
	expect(self_task, "Close|fd=%ld", fd);
	++*n_signals;
	errno = saved;
}

static void alarm_in(long microseconds, int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	struct itimerval timer = { .it_value = { .tv_usec = microseconds } };

	MUST(sigaction(SIGALRM, &action, NULL));
	MUST(setitimer(ITIMER_REAL, &timer, NULL));
}

/* The child opens the other end of the fifo when the parent has been interrupted for sure. */
static void begun_again(struct task *task)
{
	struct task child = expect_child(task);
	long fd, pid = MUST(fork_call());

	if (!pid) {
		while (*n_signals < 2)
			usleep(1000);
		fd = MUST(open("fifo", O_WRONLY));
		expect_open(&child, here("fifo"), here("fifo"), O_WRONLY, 0, fd);
		leave(&child, 0);
	}
	expect_forked(task, &child, pid);
	alarm_in(30000, SA_RESTART);
	fd = MUST(open("fifo", O_RDONLY));
	expect_open(task, here("fifo"), here("fifo"), O_RDONLY, 0, fd);
	wait_for(pid);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	self_task = &task;
	n_signals = mmap(NULL, sizeof(*n_signals), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n_signals == MAP_FAILED)
		die("no shared memory");
	MUST(mkfifo("fifo", 0600));
	alarm_in(30000, 0);
	MUST_FAIL(open("fifo", O_RDONLY), EINTR);
	begun_again(&task);
	if (*n_signals != 2)
		die("the signals did not come");
	leave(&task, 0);
}
