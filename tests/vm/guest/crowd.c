// SPDX-License-Identifier: Apache-2.0
/*
 * crowd N: a process of N threads more. Says `ready` when all are there; after a line on standard
 * input each opens the file `thread`, and the process ends.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES 65536

static pthread_barrier_t all_there, go;

static void *member(void *unused)
{
	int fd;

	(void)unused;
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&go);
	fd = open("thread", O_RDONLY);
	if (fd >= 0)
		close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc == 2 ? atoi(argv[1]) : 0;
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	pthread_attr_t small;
	int i;

	if (n <= 0 || !threads) {
		fprintf(stderr, "usage: crowd N\n");
		return 2;
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	pthread_barrier_init(&all_there, NULL, (unsigned int)n + 1);
	pthread_barrier_init(&go, NULL, (unsigned int)n + 1);
	for (i = 0; i < n; i++) {
		if (pthread_create(&threads[i], &small, member, NULL)) {
			perror("crowd");
			return 1;
		}
	}
	pthread_barrier_wait(&all_there);
	puts("ready");
	fflush(stdout);
	getchar();
	pthread_barrier_wait(&go);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
