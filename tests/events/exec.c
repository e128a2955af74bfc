// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* execve, execveat: program, working directory and arguments; a failed exec prints nothing. */
#include "expect.h"

struct call {
	const char *path; /* as given */
	int dirfd; /* AT_FDCWD: execve */
	int flags;
	const char *cwd; /* change to it before, or NULL */
};

static void child_execs(struct task *task, struct call call, const char *program, char **extra)
{
	struct task child = expect_child(task);
	char *argv[8] = { "zero", "--as", child.name };
	long pid = MUST(fork_call());

	if (pid) {
		expect_forked(task, &child, pid);
		wait_for(pid);
		return;
	}
	for (int i = 0; extra && extra[i]; i++)
		argv[3 + i] = extra[i];
	if (call.cwd)
		MUST(chdir(call.cwd));
	expect_exec(&child, program, program, argv);
	if (call.dirfd == AT_FDCWD && !call.flags)
		syscall(SYS_execve, call.path, argv, environ);
	else
		syscall(SYS_execveat, call.dirfd, call.path, argv, environ, call.flags);
	die(call.path);
}

/* Names by which this program can be called; the last symlink of a name is its identity. */
static void make_names(struct task *task)
{
	make_dir("dir");
	MUST(symlink(self(), "dir/gcc"));
	expect_symlink(task, self(), self(), here("dir/gcc"));
	MUST(symlink("gcc", "dir/cc"));
	expect_symlink(task, "gcc", self(), here("dir/cc"));
	MUST(symlink("dir", "dirlink"));
	expect_symlink(task, "dir", here("dir"), here("dirlink"));
	MUST(symlink("gcc", "dir/new\nline"));
	expect_symlink(task, "gcc", self(), here("dir/new\nline"));
}

static void by_name(struct task *task)
{
	struct call call = { .dirfd = AT_FDCWD, .path = self() };

	child_execs(task, call, self(), NULL);
	call.path = "dir/cc";
	child_execs(task, call, here("dir/cc"), NULL);
	call.path = "./dirlink/../dirlink//gcc";
	child_execs(task, call, here("dir/gcc"), NULL);
	call.path = "dir/new\nline";
	child_execs(task, call, here("dir/new\nline"), NULL);
	call.path = "gcc";
	call.cwd = "dirlink";
	child_execs(task, call, here("dir/gcc"), NULL);
	call.path = here("dirlink/cc");
	call.cwd = "/";
	child_execs(task, call, here("dir/cc"), NULL);
}

static void by_descriptor(struct task *task)
{
	struct call call = { .path = "gcc" };
	int fd;

	call.dirfd = (int)MUST(open("dirlink", O_PATH));
	expect_open(task, here("dir"), here("dirlink"), O_PATH, 0, call.dirfd);
	child_execs(task, call, here("dir/gcc"), NULL);
	fd = (int)MUST(open(self(), O_RDONLY));
	expect_open(task, self(), self(), O_RDONLY, 0, fd);
	call = (struct call){ .path = "", .dirfd = fd, .flags = AT_EMPTY_PATH };
	child_execs(task, call, self(), NULL);
}

/* A link of /proc names nothing that lasts: it is followed, unlike other links. */
static void by_proc(struct task *task)
{
	struct task child = expect_child(task);
	char *argv[] = { "exe", "--as", child.name, NULL };
	long pid = MUST(fork_call());

	if (!pid) {
		expect_exec(&child, self(), self(), argv);
		MUST(syscall(SYS_execve, "/proc/self/exe", argv, environ));
	}
	expect_forked(task, &child, pid);
	wait_for(pid);
}

static void fail(char **argv)
{
	char *long_arg[] = { repeat('x', 200000), NULL };

	MUST_FAIL(syscall(SYS_execve, "absent", argv, environ), ENOENT);
	MUST_FAIL(syscall(SYS_execve, "dir", argv, environ), EACCES);
	MUST_FAIL(syscall(SYS_execve, "dir/gcc/x", argv, environ), ENOTDIR);
	MUST_FAIL(syscall(SYS_execve, WILD, argv, environ), EFAULT);
	MUST_FAIL(syscall(SYS_execve, self(), WILD, environ), EFAULT);
	MUST_FAIL(syscall(SYS_execve, self(), long_arg, environ), E2BIG);
	MUST_FAIL(syscall(SYS_execveat, -1, "gcc", argv, environ, 0), EBADF);
	make_file("empty");
	MUST(chmod("empty", 0755));
	MUST_FAIL(syscall(SYS_execve, "empty", argv, environ), ENOEXEC);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *twice[] = { argv[0], "--as", task.name, "again", NULL };

	if (argc > 1)
		leave(&task, 0);
	make_names(&task);
	by_name(&task);
	by_descriptor(&task);
	by_proc(&task);
	fail(argv);
	/* the program itself once more: same task, one more New_proc */
	for (int fd = 3; fd <= 4; fd++) {
		MUST(close(fd));
		expect(&task, "Close|fd=%d", fd);
	}
	expect_exec(&task, self(), self(), twice);
	MUST(syscall(SYS_execve, self(), twice, environ));
}
