/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What a capture backend must print, said by the program that makes the calls. Written from
 * docs/format.md alone and sharing no code with the backends, so that it can contradict them.
 *
 * A program makes a call and prints on standard output the lines that the call must give, each as
 * `NAME!data`. NAME stands for the upid: `1` is the program itself, `1.2` its second child. Nothing
 * here makes a call that is traced, so standard output holds all lines of the program from its
 * New_proc to its Exit. tests/trace_lines.py compares task by task.
 *
 * Comments that the runner reads in the head of a program:
 *	options: what the backend is started with		needs: root
 *	only: 64 or 32, when the calls exist in one mode alone
 *	since: the first Linux that knows its calls, where it is above 5.10
 *	machine: as uname -m says, when the calls exist on one alone
 *	warns: what a backend says at its end, where it says anything
 */
#ifndef EXPECT_H
#define EXPECT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A pointer that no process maps. */
#define WILD ((void *)16)
/* A value that differs between kernels. */
#define ANY "<any>"

#define PATH_BYTES 8192

struct task {
	char name[64];
	int n_children;
};

/* What the task is called: `1`, with its New_proc printed, or after an exec what --as says. */
struct task expect_start(int argc, char **argv);

void expect(const struct task *task, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void expect_string(const struct task *task, const char *tag, const char *text);
void expect_item(const struct task *task, const char *tag, unsigned int index, const char *text);

void expect_open(const struct task *task, const char *resolved, const char *original, int flags,
		 unsigned int mode, long fd);
void expect_exec(const struct task *task, const char *interpreter, const char *program,
		 char *const *argv);
/* `tag` is RenameFrom, LinkTo, ...; `data` the tag of its string; `flags` -1 when it has none. */
void expect_path(const struct task *task, const char *tag, const char *data, const char *path,
		 int flags);
void expect_symlink(const struct task *task, const char *target, const char *resolved,
		    const char *path);

/* Name the next child of `parent`; before the call that makes it, for it may share memory. */
struct task expect_child(struct task *parent);
/* The child is there; the runner gets its tid, which looks for it in the upid. */
void expect_fork(const struct task *parent, const struct task *child, long tid);
/* It was made by fork_call(). */
void expect_forked(const struct task *parent, const struct task *child, long tid);
/* The source of a link() that exists. */
void expect_link_from(const struct task *task, const char *path);

/* The status that the task is about to end with. */
void expect_exit(const struct task *task, int status);
void leave(const struct task *task, int status) __attribute__((noreturn));
void wait_for(long pid);

/* Set-up failed: the program cannot say what it was written to say. */
void die(const char *what) __attribute__((noreturn));
/* `result` when it is not negative, else die. */
long must(long result, const char *what);
#define MUST(call) must((long)(call), #call)
/* The call must fail, with `error`. */
void must_fail(long result, int error, const char *what);
#define MUST_FAIL(call, error) must_fail((long)(call), (error), #call)

/*
 * System calls that newer machines (arm64) do not have: there what libc's function of the name makes
 * of it, for which the format has the same line. Not of fork and link: expect_forked() and
 * expect_link_from() know. libc's own open(), rename(), ... do the same.
 */
long fork_call(void);
long open_call(const char *path, int flags, unsigned int mode);
long creat_call(const char *path, unsigned int mode);
long pipe_call(int *fds);
long dup2_call(int from, int to);
long rename_call(const char *from, const char *to);
long link_call(const char *from, const char *to);
long symlink_call(const char *target, const char *path);

/* A new string; never freed, programs are short. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *repeat(char byte, size_t count);
/* Working directory; absolute path of a name in it; what a symlink (of /proc) says. */
char *cwd(void);
char *here(const char *name);
char *link_of(const char *path);
/* Path of this program. */
char *self(void);

/* A regular file without a call that is traced. */
void make_file(const char *path);
void make_dir(const char *path);

/* A thread: `body(argument)` in shared memory with flags of its own; returns when it has ended. */
long run_clone(int (*body)(void *), void *argument, unsigned long flags);
#define THREAD_FLAGS                                                                               \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)
/* As run_clone() without waiting; `gone` becomes 0 when the thread has ended. */
long start_clone(int (*body)(void *), void *argument, unsigned long flags, int *gone);
void wait_gone(int *gone);

#endif /* EXPECT_H */
