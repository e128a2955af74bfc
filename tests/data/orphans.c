// SPDX-License-Identifier: Apache-2.0
/*
 * Kills a process again and again while it forks: its newest child loses its parent before a tracer
 * hears of it. Ends when every such child has ended. `orphans N subreaper` adopts them itself.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void fork_for_ever(int keep_open)
{
	(void)keep_open;
	for (;;)
		if (fork() == 0)
			_exit(0);
}

static void kill_a_forker(void)
{
	int ends[2];
	pid_t forker;
	char byte;

	if (pipe(ends) < 0)
		exit(1);
	forker = fork();
	if (forker == 0) {
		close(ends[0]);
		fork_for_ever(ends[1]);
	}
	close(ends[1]);
	usleep(2000 + (useconds_t)(rand() % 3000));
	kill(forker, SIGKILL);
	waitpid(forker, NULL, 0);
	while (read(ends[0], &byte, 1) > 0)
		;
	close(ends[0]);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;

	if (argc > 2)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	while (n-- > 0)
		kill_a_forker();
	while (wait(NULL) > 0)
		;
	return 0;
}
