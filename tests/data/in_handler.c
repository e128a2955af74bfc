/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files in the main program and in a handler that interrupts it, on a small stack of its own.
 * Usage: in_handler COUNT; prints how often the handler ran.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define STACK_BYTES 16384

static volatile int n_handled;

static void handle(int signal)
{
	int fd = open("/etc/passwd", O_RDONLY);

	(void)signal;
	close(fd);
	n_handled++;
}

int main(int argc, char **argv)
{
	static char stack[STACK_BYTES];
	stack_t alternative = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerval often = { { 0, 50 }, { 0, 50 } };
	int n = argc > 1 ? atoi(argv[1]) : 0;

	sigaltstack(&alternative, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (n-- > 0) {
		errno = 12345;
		close(open("/etc/group", O_RDONLY));
		if (errno != 12345)
			return 1;
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
	printf("%d\n", n_handled);
	return 0;
}
