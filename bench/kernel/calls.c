// SPDX-License-Identifier: Apache-2.0
/*
 * calls KIND COUNT ROUNDS: nanoseconds of one turn of KIND, the least of ROUNDS times COUNT turns. In a
 * guest with -icount shift=0 a nanosecond is an instruction. The least of some short rounds is one
 * without a timer tick. Marks (marks.h) surround each.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char self[4096];

static void open_close(void)
{
	int fd = open("/run/target", O_RDONLY);

	if (fd < 0) {
		perror("/run/target");
		exit(1);
	}
	close(fd);
}

static void fork_exec_exit(void)
{
	char *argv[] = { self, "nothing", NULL };
	char *environment[] = { NULL };
	pid_t pid = fork();

	if (!pid) {
		execve(self, argv, environment);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

static void call_getpid(void)
{
	syscall(SYS_getpid);
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "open_close", open_close },
	{ "fork_exec_exit", fork_exec_exit },
	{ "getpid", call_getpid },
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* MARK_BEGIN and MARK_END: for a plugin that counts what is executed between them. */
static void mark_begin(void)
{
	__asm__ volatile("nopl 0x65740001(%%rax,%%rax,1)" ::: "memory");
}

static void mark_end(void)
{
	__asm__ volatile("nopl 0x65740002(%%rax,%%rax,1)" ::: "memory");
}

static int64_t round_ns(void (*run)(void), long count)
{
	int64_t start = now_ns();

	for (long i = 0; i < count; i++)
		run();
	return (now_ns() - start) / count;
}

int main(int argc, char **argv)
{
	void (*run)(void) = NULL;
	int64_t least = INT64_MAX;

	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	for (size_t i = 0; argc == 4 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name))
			run = kinds[i].run;
	if (!run || atol(argv[2]) <= 0 || atoi(argv[3]) <= 0) {
		fprintf(stderr, "usage: calls KIND COUNT ROUNDS\n");
		return 2;
	}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	round_ns(run, atol(argv[2]) / 10 + 1); /* caches of names and pages are warm from here on */
	for (int i = 0; i < atoi(argv[3]); i++) {
		int64_t ns;

		mark_begin();
		ns = round_ns(run, atol(argv[2]));
		mark_end();
		least = ns < least ? ns : least;
	}
	printf("%lld\n", (long long)least);
	return 0;
}
