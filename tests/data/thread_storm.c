// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that open and close files of their own as fast as they can in one table of descriptors,
 * while a timer interrupts them: `thread_storm THREADS ROUNDS`. Thread N opens the file tN.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static int n_rounds;

static void tick(int signal_number)
{
	(void)signal_number;
}

static void *storm(void *argument)
{
	char name[32];

	snprintf(name, sizeof(name), "t%ld", (long)argument);
	for (int i = 0; i < n_rounds; i++) {
		int fd = open(name, O_RDWR | O_CREAT, 0644);
		int copy = dup(fd);

		if (fd < 0 || copy < 0 || close(fd) || close(copy))
			abort();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct itimerval often = { { 0, 700 }, { 0, 700 } };
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	long n_threads = argc > 2 ? atol(argv[1]) : 0;
	pthread_t threads[64];

	if (n_threads < 1 || n_threads > 64)
		return 2;
	n_rounds = atoi(argv[2]);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], NULL, storm, (void *)i))
			return 1;
	for (long i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
