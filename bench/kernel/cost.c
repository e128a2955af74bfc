// SPDX-License-Identifier: Apache-2.0
/*
 * cost SECONDS COMMAND...: run a command, send it SIGTERM after SECONDS, print the processor time in
 * nanoseconds that it took. The kernel's sum of both times is exact to the microsecond: getrusage(2).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long long ns(struct timeval time)
{
	return (long long)time.tv_sec * 1000000000 + (long long)time.tv_usec * 1000;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: cost SECONDS COMMAND...\n");
		return 2;
	}
	pid = fork();
	if (!pid) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	sleep((unsigned int)atoi(argv[1]));
	kill(pid, SIGTERM);
	if (wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "cost: %s failed\n", argv[2]);
		return 1;
	}
	printf("%lld\n", ns(usage.ru_utime) + ns(usage.ru_stime));
	return 0;
}
