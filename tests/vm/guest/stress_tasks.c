// SPDX-License-Identifier: Apache-2.0
/*
 * Storms of tasks: stress_tasks KIND COUNT [KIND COUNT]... The kinds are in the table below. COUNT 0
 * goes on until killed. Calls may fail for want of memory (fault injection): the storm goes on. Only
 * files in memory are opened: a 9p client that fails so stays broken for the whole guest.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_AT_ONCE 16
#define N_THREADS 6
#define N_DEEP 60

static char self[4096];
static unsigned int seed = 20261121;

static unsigned int random_below(unsigned int limit)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % limit;
}

static void pause_us(unsigned int us)
{
	const struct timespec pause = { .tv_nsec = us * 1000L };

	nanosleep(&pause, NULL);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* execve() of this program, which then ends at once. */
static void become_nothing(void)
{
	char *argv[] = { self, "nothing", "0", NULL };
	char *environment[] = { NULL };

	execve(self, argv, environment);
	_exit(1);
}

static void forks(void)
{
	pid_t pids[N_AT_ONCE];

	for (int i = 0; i < N_AT_ONCE; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(i);
	}
	for (int i = 0; i < N_AT_ONCE; i++)
		if (pids[i] > 0)
			reap(pids[i]);
}

static void execs(void)
{
	pid_t pid = fork();

	if (!pid)
		become_nothing();
	if (pid > 0)
		reap(pid);
}

static void vforks(void)
{
	pid_t pid = vfork();

	if (!pid)
		become_nothing();
	if (pid > 0)
		reap(pid);
}

/* Opens, pipes and duplicates until it is killed. */
static void make_calls(void)
{
	int fds[2];

	for (;;) {
		int fd = open("/proc/self/../../run", O_RDONLY);

		if (!pipe(fds)) {
			close(fds[0]);
			close(fds[1]);
		}
		close(dup(fd));
		close(fd);
		if (symlink("/run", "stress-link"))
			unlink("stress-link");
		rename("stress-link", "stress-moved");
		unlink("stress-moved");
	}
}

/* A process killed at any point of its life, in the middle of calls and execs. */
static void kills(void)
{
	pid_t pid = fork();

	if (!pid) {
		if (random_below(3))
			make_calls();
		for (;;)
			execs();
	}
	if (pid < 0)
		return;
	pause_us(random_below(3000));
	kill(pid, SIGKILL);
	reap(pid);
}

static void *open_until_death(void *argument)
{
	for (;;)
		close(open(".", O_RDONLY));
	return argument;
}

static void *exec_from_thread(void *argument)
{
	(void)argument;
	become_nothing();
	return NULL;
}

/* Threads in the middle of calls while one of them replaces the program. */
static void thread_execs(void)
{
	pid_t pid = fork();
	pthread_t thread;

	if (!pid) {
		for (int i = 0; i < N_THREADS; i++)
			pthread_create(&thread, NULL, open_until_death, NULL);
		pause_us(random_below(1000));
		if (pthread_create(&thread, NULL, exec_from_thread, NULL))
			_exit(1);
		pause();
	}
	if (pid > 0)
		reap(pid);
}

static void *end_at_once(void *argument)
{
	return argument;
}

static void threads(void)
{
	pthread_t made[N_THREADS];
	int n = 0;

	while (n < N_THREADS && !pthread_create(&made[n], NULL, end_at_once, NULL))
		n++;
	while (n)
		pthread_join(made[--n], NULL);
}

/* A chain of processes, each the child of the one before; all are alive at once. */
static void deep(void)
{
	pid_t pid;

	for (int depth = 0; depth < N_DEEP; depth++) {
		pid = fork();
		if (pid) {
			if (pid > 0)
				reap(pid);
			if (depth)
				_exit(0);
			return;
		}
	}
	become_nothing();
}

/* Children that outlive their parents. */
static void orphans(void)
{
	pid_t pid = fork();

	if (!pid) {
		if (!fork()) {
			pause_us(random_below(2000));
			become_nothing();
		}
		_exit(0);
	}
	if (pid > 0)
		reap(pid);
}

static void shared_files(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | CLONE_FS | SIGCHLD, NULL, NULL, NULL, NULL);

	if (!pid) {
		int fds[2];

		if (!pipe2(fds, O_CLOEXEC))
			become_nothing();
		_exit(1);
	}
	if (pid > 0)
		reap(pid);
}

static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "fork", forks },	     { "exec", execs },	      { "vfork", vforks },
	{ "kill", kills },	     { "thread", threads },   { "thread_exec", thread_execs },
	{ "deep", deep },	     { "orphan", orphans },   { "shared_files", shared_files },
	{ "nothing", nothing },
};

static void storm(const char *name, long count)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(name, kinds[i].name)) {
			for (long n = 0; n < count || !count; n++) {
				if (kinds[i].run == nothing)
					return;
				kinds[i].run();
			}
			return;
		}
	fprintf(stderr, "stress_tasks: no kind %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0 || argc < 3) {
		fprintf(stderr, "usage: stress_tasks KIND COUNT...\n");
		return 2;
	}
	for (int i = 1; i + 1 < argc; i += 2)
		storm(argv[i], atol(argv[i + 1]));
	return 0;
}
