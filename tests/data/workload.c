// SPDX-License-Identifier: Apache-2.0
/*
 * A deterministic storm of calls: `workload SEED STEPS`. What it does next depends on the seed
 * alone, so that two runs in equal folders make equal calls.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_NAMES 12
#define N_FDS 24
#define MAX_DEPTH 3

static uint64_t state;

static unsigned int next(unsigned int below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(state >> 33) % below;
}

static const char *name(void)
{
	static char names[4][64];
	static unsigned int turn;
	static const char *const dirs[] = { "", "d0/", "d1/", "d1/../", "./", "dl/" };
	char *text = names[turn++ % 4];

	snprintf(text, sizeof(names[0]), "%sn%u", dirs[next(6)], next(N_NAMES));
	return text;
}

static int fd(void)
{
	return (int)next(N_FDS) + 3;
}

static void descriptors(void)
{
	int fds[2];

	switch (next(7)) {
	case 0:
		(void)!syscall(SYS_dup, fd());
		break;
	case 1:
		(void)!syscall(SYS_dup2, fd(), fd());
		break;
	case 2:
		(void)!syscall(SYS_dup3, fd(), fd(), next(2) ? O_CLOEXEC : 0);
		break;
	case 3:
		(void)!fcntl(fd(), next(2) ? F_DUPFD : F_DUPFD_CLOEXEC, fd());
		break;
	case 4:
		(void)!syscall(SYS_pipe, fds);
		break;
	case 5:
		(void)!syscall(SYS_pipe2, fds, next(2) ? O_CLOEXEC : O_NONBLOCK);
		break;
	default:
		for (int i = 0; i < 4; i++)
			(void)!syscall(SYS_close, fd());
	}
}

static void opens(void)
{
	static const int flags[] = { O_RDONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC,
				     O_RDWR | O_CREAT | O_EXCL, O_RDONLY | O_CLOEXEC, O_PATH,
				     O_RDONLY | O_DIRECTORY };
	int flag = flags[next(7)];

	if (next(2))
		(void)!syscall(SYS_open, name(), flag, 0640);
	else
		(void)!syscall(SYS_openat, next(4) ? AT_FDCWD : fd(), name(), flag, 0640);
	if (next(3))
		(void)!syscall(SYS_close, fd());
}

static void names(void)
{
	switch (next(6)) {
	case 0:
		(void)!syscall(SYS_rename, name(), name());
		break;
	case 1:
		(void)!syscall(SYS_renameat2, AT_FDCWD, name(), AT_FDCWD, name(), next(3));
		break;
	case 2:
		(void)!syscall(SYS_link, name(), name());
		break;
	case 3:
		(void)!syscall(SYS_symlinkat, name(), AT_FDCWD, name());
		break;
	default:
		(void)!unlink(name());
	}
}

static void run(unsigned int steps, int depth, char **argv);

static void child(unsigned int steps, int depth, char **argv)
{
	char seed[24], count[12], level[12];
	char *args[] = { argv[0], seed, count, level, NULL };
	pid_t pid = fork();

	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	state ^= (uint64_t)depth * 0x9e3779b97f4a7c15u;
	if (next(2)) {
		snprintf(seed, sizeof(seed), "%u", next(1u << 30));
		snprintf(count, sizeof(count), "%u", steps);
		snprintf(level, sizeof(level), "%d", depth);
		execv(next(8) ? argv[0] : "absent", args);
	}
	run(steps, depth, argv);
	if (!next(6))
		raise(SIGKILL);
	_exit((int)next(256));
}

static void run(unsigned int steps, int depth, char **argv)
{
	for (unsigned int i = 0; i < steps; i++) {
		unsigned int kind = next(40);

		if (kind < 14)
			opens();
		else if (kind < 28)
			descriptors();
		else if (kind < 39)
			names();
		else if (depth < MAX_DEPTH)
			child(steps / 10, depth + 1, argv);
	}
}

int main(int argc, char **argv)
{
	int depth = argc > 3 ? atoi(argv[3]) : 0;

	if (argc < 3)
		return 2;
	state = strtoull(argv[1], NULL, 10) * 2 + 1;
	if (!depth && (mkdir("d0", 0755) || mkdir("d1", 0755) || symlink("d0", "dl")))
		return 1;
	run((unsigned int)atoi(argv[2]), depth, argv);
	return (int)next(200);
}
