// SPDX-License-Identifier: Apache-2.0
/*
 * A second thread changes the arguments of a system call in memory while the call runs.
 * `races MODE N` makes N calls and prints a line for each about what the kernel really did.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FREE_FD 40 /* the descriptor that the calls get is dup'ed nowhere near it */

static volatile struct {
	uint64_t flags, mode, resolve;
} how;
static volatile int fds[2];
static volatile char name[16];
static char made[32];
static volatile uint64_t clone_args[8];
static volatile int is_armed, is_over;

/* Until the call has done its work, by what can be seen of it; then change what it was given. */
static void *spoil(void *mode)
{
	struct stat st;

	while (!is_over) {
		if (!is_armed)
			continue;
		if (!strcmp(mode, "openat2")) {
			while (is_armed == 1 && syscall(SYS_fcntl, FREE_FD, F_GETFD, 0) < 0)
				;
			how.flags = how.mode = 0;
		} else if (!strcmp(mode, "pipe")) {
			while (is_armed == 1 && fds[1] < 0)
				;
			fds[0] = 0;
			fds[1] = 1;
		} else {
			while (is_armed == 1 && fstatat(AT_FDCWD, made, &st, AT_SYMLINK_NOFOLLOW) < 0)
				;
			name[0] = 'z';
		}
		is_armed = 0;
	}
	return NULL;
}

/* One of two values, again and again. */
static void *flip(void *mode)
{
	while (!is_over) {
		if (!strcmp(mode, "clone3"))
			clone_args[0] ^= CLONE_FS;
		else
			name[0] ^= 'a' ^ 'b';
	}
	return NULL;
}

static void wait_for_spoiler(void)
{
	if (is_armed)
		is_armed = 2; /* the call failed, or is over */
	while (is_armed)
		;
}

static void open_file(int i)
{
	char path[32];

	snprintf(path, sizeof(path), "out%d", i);
	how.flags = O_WRONLY | O_CREAT | O_TRUNC;
	how.mode = 0644;
	is_armed = 1;
	int fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	wait_for_spoiler();
	close(fd);
}

static void make_pipe(void)
{
	fds[0] = fds[1] = -1;
	is_armed = 1;
	syscall(SYS_pipe2, fds, 0);
	wait_for_spoiler();
	close(FREE_FD);
	close(FREE_FD + 1);
}

/* `name` is the target of a link, or the source of a rename. */
static void make_name(const char *mode, int i)
{
	snprintf(made, sizeof(made), "made%d", i);
	strcpy((char *)name, "a");
	if (!strcmp(mode, "rename"))
		close(open("a", O_WRONLY | O_CREAT, 0644));
	is_armed = 1;
	if (!strcmp(mode, "rename"))
		syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, made, 0);
	else
		syscall(SYS_symlinkat, name, AT_FDCWD, made);
	wait_for_spoiler();
	unlink(made);
}

static void make_child(void)
{
	clone_args[0] &= CLONE_FS;
	clone_args[4] = SIGCHLD;
	long child = syscall(SYS_clone3, clone_args, sizeof(clone_args));

	if (child == 0)
		_exit(syscall(SYS_kcmp, getppid(), getpid(), KCMP_FS, 0, 0) == 0);
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
}

static void set_name(void)
{
	char kept[16];

	prctl(PR_SET_NAME, name);
	prctl(PR_GET_NAME, kept);
	puts(kept);
}

/* Each in a process of its own: a or b of this directory, both copies of this program. */
static void execute(char *self)
{
	char *arguments[] = { self, "say", "0", NULL };
	pthread_t thread;
	pid_t child = fork();

	if (child == 0) {
		int directory = open(".", O_RDONLY | O_DIRECTORY);

		pthread_create(&thread, NULL, flip, "name");
		usleep(1000);
		syscall(SYS_execveat, directory, name, arguments, environ, 0);
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

static int say_program(void)
{
	char path[4096] = "";

	readlink("/proc/self/exe", path, sizeof(path) - 1);
	puts(path);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argv[1];
	int n = atoi(argv[2]);
	int is_flipped = !strcmp(mode, "clone3") || !strcmp(mode, "name");
	pthread_t thread;
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(mode, "say"))
		return say_program();
	strcpy((char *)name, "a");
	for (i = open("/dev/null", O_RDONLY); i < FREE_FD - 1; i = dup(i))
		;
	if (strcmp(mode, "execveat"))
		pthread_create(&thread, NULL, is_flipped ? flip : spoil, (void *)mode);
	for (i = 0; i < n; i++) {
		if (!strcmp(mode, "openat2"))
			open_file(i);
		else if (!strcmp(mode, "pipe"))
			make_pipe();
		else if (!strcmp(mode, "clone3"))
			make_child();
		else if (!strcmp(mode, "name"))
			set_name();
		else if (!strcmp(mode, "execveat"))
			execute(argv[0]);
		else
			make_name(mode, i);
	}
	is_over = 1;
	return 0;
}
