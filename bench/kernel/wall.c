// SPDX-License-Identifier: Apache-2.0
/* wall COMMAND...: run a command, print the nanoseconds of CLOCK_MONOTONIC that it took. */
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int64_t start = now_ns();
	int status;
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: wall COMMAND...\n");
		return 2;
	}
	pid = fork();
	if (!pid) {
		dup2(STDERR_FILENO, STDOUT_FILENO); /* the figure alone goes to stdout */
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "wall: %s failed\n", argv[1]);
		return 1;
	}
	printf("%lld\n", (long long)(now_ns() - start));
	return 0;
}
