// SPDX-License-Identifier: Apache-2.0
/*
 * Strings that are hard to record: stress_memory KIND COUNT [KIND COUNT]... Huge arguments, longest
 * paths, pointers to nothing, to a page's end, and to memory that another thread changes, unmaps and
 * maps meanwhile. Works in the current folder. What the calls return does not matter.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENT_BYTES (120 * 1024)
#define PATH_BYTES 4096 /* with its null byte */
#define NAME_BYTES 200
#define N_SMALL_ARGUMENTS 20000
#define PAGE 4096

static char self[4096];

static void child(void (*body)(void))
{
	pid_t pid = fork();

	if (!pid) {
		body();
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void exec_huge(void)
{
	char *argument = malloc(ARGUMENT_BYTES);
	char *argv[] = { self, "nothing", "0", argument, "", "\n", argument + 3, NULL };

	for (int i = 0; i < ARGUMENT_BYTES; i++)
		argument[i] = i % 7 ? 'x' : '\n';
	argument[ARGUMENT_BYTES - 1] = 0;
	execv(self, argv);
}

static void huge_arguments(void)
{
	child(exec_huge);
}

static void exec_many(void)
{
	char **argv = calloc(N_SMALL_ARGUMENTS + 4, sizeof(*argv));

	argv[0] = self;
	argv[1] = "nothing";
	argv[2] = "0";
	for (int i = 3; i < N_SMALL_ARGUMENTS + 3; i++)
		argv[i] = i % 5 ? "a" : "";
	execv(self, argv);
}

static void many_arguments(void)
{
	child(exec_many);
}

/* Folders below each other until no longer path fits; every call is made on the longest. */
static void go_deep(void)
{
	char name[NAME_BYTES + 1], path[PATH_BYTES], longest[PATH_BYTES];

	memset(name, 'd', NAME_BYTES);
	name[NAME_BYTES / 2] = '\n';
	name[NAME_BYTES] = 0;
	while (getcwd(path, sizeof(path)) && strlen(path) + NAME_BYTES + 1 < PATH_BYTES) {
		mkdir(name, 0755);
		if (chdir(name))
			return;
	}
	if (!getcwd(path, sizeof(path)))
		return;
	memset(longest, 'l', sizeof(longest));
	longest[PATH_BYTES - 1] = 0;
	memcpy(longest, path, strlen(path));
	longest[strlen(path)] = '/';
	close(open(longest, O_CREAT | O_RDWR, 0644));
	rename(longest, "moved");
	link("moved", longest);
	unlink(longest);
	symlink(longest, "link");
	close(open("link", O_RDONLY));
	longest[PATH_BYTES - 1] = 'x'; /* one too long, and no end */
	close(open(longest, O_RDONLY));
	unlink("link");
	unlink("moved");
}

static void long_paths(void)
{
	child(go_deep);
}

static void call_with(const char *path, const void *other)
{
	struct open_how how = { .flags = O_RDONLY };
	int fds[2];

	close(open(path, O_RDONLY));
	close((int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT, 0644));
	close((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
	close((int)syscall(SYS_openat2, AT_FDCWD, path, other, sizeof(how)));
	rename(path, other);
	link(path, other);
	symlink(path, other);
	syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, 1);
	syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, other, AT_SYMLINK_FOLLOW);
	mount(path, other, path, MS_BIND, other);
	umount2(path, MNT_DETACH);
	syscall(SYS_pipe2, other, 0);
	if (!pipe(fds)) {
		close(fds[0]);
		close(fds[1]);
	}
	syscall(SYS_execve, path, other, other);
	syscall(SYS_clone3, other, 64);
	syscall(SYS_clone3, path, 88);
}

/* Each string at a place where reading it faults: nowhere, in the kernel, at the end of a page. */
static void wild_pointers(void)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const void *wild[] = { NULL, (void *)16, (void *)-1, (void *)0xffff888000000000, NULL, NULL };

	if (pages == MAP_FAILED)
		return;
	memset(pages, 'p', PAGE);
	munmap(pages + PAGE, PAGE);
	wild[4] = pages + PAGE - 5; /* no null byte before the hole */
	wild[5] = pages + PAGE;
	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++)
		for (size_t j = 0; j < sizeof(wild) / sizeof(*wild); j++)
			call_with(wild[i], wild[j]);
	call_with("target", "another");
	munmap(pages, PAGE);
}

static char *shared;
static volatile bool over;

/* The memory under the other thread's strings comes, goes and changes. */
static void *disturb(void *argument)
{
	(void)argument;
	while (!over) {
		memcpy(shared + PAGE - 8, "aaaaaaaaaaaaaaa", 16);
		mprotect(shared + PAGE, PAGE, PROT_NONE);
		memcpy(shared + PAGE - 8, "b/./../", 8);
		madvise(shared, 2 * PAGE, MADV_DONTNEED);
		mprotect(shared + PAGE, PAGE, PROT_READ | PROT_WRITE);
		memset(shared, 'c', PAGE + 100);
		mmap(shared + PAGE, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	return NULL;
}

static void *reuse_descriptors(void *argument)
{
	(void)argument;
	while (!over) {
		for (int fd = 3; fd < 8; fd++)
			close(fd);
		close(open("/etc/hosts", O_RDONLY));
		dup2(0, 5);
	}
	return NULL;
}

static void race(void)
{
	pthread_t threads[2];

	shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pthread_create(&threads[0], NULL, disturb, NULL))
		return;
	if (pthread_create(&threads[1], NULL, reuse_descriptors, NULL))
		return;
	for (int i = 0; i < 100; i++)
		call_with(shared + PAGE - 8, shared + PAGE - 3);
	over = true;
	_exit(0);
}

static void races(void)
{
	child(race);
}

static void wild(void)
{
	child(wild_pointers);
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "huge_arguments", huge_arguments }, { "many_arguments", many_arguments },
	{ "long_paths", long_paths },	      { "wild_pointers", wild },
	{ "races", races },
};

static void storm(const char *name, long count)
{
	if (!strcmp(name, "nothing"))
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(name, kinds[i].name)) {
			for (long n = 0; n < count || !count; n++)
				kinds[i].run();
			return;
		}
	fprintf(stderr, "stress_memory: no kind %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0 || argc < 3) {
		fprintf(stderr, "usage: stress_memory KIND COUNT...\n");
		return 2;
	}
	if (argc > 3 && !strcmp(argv[1], "nothing"))
		return 0;
	for (int i = 1; i + 1 < argc; i += 2)
		storm(argv[i], atol(argv[i + 1]));
	return 0;
}
