// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* See expect.h. Rules of strings and parts: docs/format.md, "Strings". */
#include "expect.h"

#include <linux/futex.h>

#define PART_BYTES 900
#define STACK_BYTES (1024 * 1024)

static void write_all(const char *bytes, size_t len)
{
	if (write(STDOUT_FILENO, bytes, len) != (ssize_t)len)
		die("write of an expected line");
}

/* One line in one write, so that tasks can share the descriptor. */
static void put_line(const struct task *task, const char *head, const char *bytes, size_t len)
{
	size_t room = sizeof(task->name) + strlen(head) + len + 2;
	char line[room];
	int start = snprintf(line, room, "%s!%s", task->name, head);

	memcpy(line + start, bytes, len);
	line[(size_t)start + len] = '\n';
	write_all(line, (size_t)start + len + 1);
}

void expect(const struct task *task, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	put_line(task, line, "", 0);
}

/* `head` and the bytes; what follows a newline goes on lines of its own. */
static void put_group(const struct task *task, const char *head, const char *bytes, size_t len,
		      const char *group_end)
{
	const char *newline;
	bool continued = false;

	while ((newline = memchr(bytes, '\n', len))) {
		size_t before = (size_t)(newline - bytes);

		put_line(task, continued ? "Cont|" : head, bytes, before);
		continued = true;
		bytes = newline + 1;
		len -= before + 1;
	}
	put_line(task, continued ? "Cont|" : head, bytes, len);
	if (continued)
		put_line(task, group_end, "", 0);
}

void expect_string(const struct task *task, const char *tag, const char *bytes)
{
	size_t len = strlen(bytes);
	char head[64];

	if (len < PART_BYTES) {
		snprintf(head, sizeof(head), "%s|", tag);
		put_group(task, head, bytes, len, "Cont_end|");
		return;
	}
	for (unsigned int i = 0; len; i++) {
		size_t part = len < PART_BYTES ? len : PART_BYTES;

		snprintf(head, sizeof(head), "%s[%u]", tag, i);
		put_group(task, head, bytes, part, part == len ? "Cont_end" : "Cont_end|");
		bytes += part;
		len -= part;
	}
	expect(task, "%s_end", tag);
}

void expect_item(const struct task *task, const char *tag, unsigned int index, const char *bytes)
{
	size_t len = strlen(bytes);
	char head[64];

	snprintf(head, sizeof(head), "%s[%u]", tag, index);
	do {
		size_t part = len < PART_BYTES ? len : PART_BYTES;

		put_group(task, head, bytes, part, "Cont_end|");
		bytes += part;
		len -= part;
	} while (len);
}

void expect_open(const struct task *task, const char *resolved, const char *original, int flags,
		 unsigned int mode, long fd)
{
	expect(task, "Open|fnamesize=%zu,forigsize=%zu,flags=%u,mode=%u,fd=%ld", strlen(resolved),
	       strlen(original), (unsigned int)flags, mode, fd);
	expect_string(task, "FN", resolved);
	expect_string(task, "FO", original);
}

void expect_exec(const struct task *task, const char *interpreter, const char *program,
		 char *const *argv)
{
	size_t argsize = 0;

	for (unsigned int i = 0; argv[i]; i++)
		argsize += strlen(argv[i]) + 1;
	expect(task, "New_proc|argsize=%zu,prognameisize=%zu,prognamepsize=%zu,cwdsize=%zu",
	       argsize, strlen(interpreter), strlen(program), strlen(cwd()));
	expect_string(task, "PI", interpreter);
	expect_string(task, "PP", program);
	expect_string(task, "CW", cwd());
	for (unsigned int i = 0; argv[i]; i++)
		expect_item(task, "A", i, argv[i]);
	expect(task, "End_of_args|");
}

void expect_path(const struct task *task, const char *tag, const char *data, const char *path,
		 int flags)
{
	if (flags < 0)
		expect(task, "%s|fnamesize=%zu", tag, strlen(path));
	else
		expect(task, "%s|fnamesize=%zu,flags=%d", tag, strlen(path), flags);
	expect_string(task, data, path);
}

void expect_symlink(const struct task *task, const char *target, const char *resolved,
		    const char *path)
{
	char size[64] = "";

	if (resolved)
		snprintf(size, sizeof(size), "resolvednamesize=%zu,", strlen(resolved));
	expect(task, "Symlink|targetnamesize=%zu,%slinknamesize=%zu", strlen(target), size,
	       strlen(path));
	expect_string(task, "ST", target);
	if (resolved)
		expect_string(task, "SR", resolved);
	expect_string(task, "SL", path);
}

struct task expect_start(int argc, char **argv)
{
	struct task task = { .name = "1" };

	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--as"))
			continue;
		snprintf(task.name, sizeof(task.name), "%s", argv[i + 1]);
		return task;
	}
	expect_exec(&task, self(), self(), argv);
	return task;
}

struct task expect_child(struct task *parent)
{
	struct task child = { .n_children = 0 };

	if (snprintf(child.name, sizeof(child.name), "%s.%d", parent->name,
		     ++parent->n_children) >= (int)sizeof(child.name))
		die("tasks nested too deeply");
	return child;
}

void expect_fork(const struct task *parent, const struct task *child, long tid)
{
	char line[128];

	expect(parent, "SchedFork|pid=%s", child->name);
	write_all(line, (size_t)snprintf(line, sizeof(line), "#tid %s %ld\n", child->name, tid));
}

void expect_forked(const struct task *parent, const struct task *child, long tid)
{
#ifndef SYS_fork
	expect(parent, "SysClone|flags=%d", CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD);
#endif
	expect_fork(parent, child, tid);
}

void expect_link_from(const struct task *task, const char *path)
{
#ifdef SYS_link
	expect_path(task, "LinkFrom", "LF", path, -1);
#else
	expect_path(task, "LinkatFrom", "LF", path, 0);
#endif
}

void expect_exit(const struct task *task, int status)
{
	expect(task, "Exit|status=%d", status);
}

void leave(const struct task *task, int status)
{
	expect_exit(task, status);
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

void wait_for(long pid)
{
	int status;

	while (waitpid((pid_t)pid, &status, __WALL) < 0)
		if (errno != EINTR)
			die("waitpid");
}

void die(const char *what)
{
	dprintf(STDERR_FILENO, "%s: %s\n", what, strerror(errno));
	_exit(99);
}

long must(long result, const char *what)
{
	if (result < 0)
		die(what);
	return result;
}

void must_fail(long result, int error, const char *what)
{
	if (result == -1 && errno == error)
		return;
	dprintf(STDERR_FILENO, "%s: returned %ld (%s), should fail: %s\n", what, result,
		result == -1 ? strerror(errno) : "no error", strerror(error));
	_exit(99);
}

char *text(const char *format, ...)
{
	char *result;
	va_list args;

	va_start(args, format);
	if (vasprintf(&result, format, args) < 0)
		die("vasprintf");
	va_end(args);
	return result;
}

char *repeat(char byte, size_t count)
{
	char *result = malloc(count + 1);

	if (!result)
		die("malloc");
	memset(result, byte, count);
	result[count] = 0;
	return result;
}

char *cwd(void)
{
	char path[PATH_BYTES];

	MUST(syscall(SYS_getcwd, path, sizeof(path)));
	return text("%s", path);
}

char *here(const char *name)
{
	return text("%s/%s", cwd(), name);
}

char *link_of(const char *path)
{
	char target[PATH_BYTES];

	target[MUST(readlink(path, target, sizeof(target) - 1))] = 0;
	return text("%s", target);
}

char *self(void)
{
	return link_of("/proc/self/exe");
}

void make_file(const char *path)
{
	MUST(mknod(path, S_IFREG | 0644, 0));
}

void make_dir(const char *path)
{
	MUST(mkdir(path, 0755));
}

long start_clone(int (*body)(void *), void *argument, unsigned long flags, int *gone)
{
	char *stack = malloc(STACK_BYTES);

	if (!stack)
		die("malloc of a stack");
	*gone = 1;
	return clone(body, stack + STACK_BYTES, (int)(flags | CLONE_CHILD_CLEARTID), argument,
		     NULL, NULL, gone);
}

void wait_gone(int *gone)
{
	while (__atomic_load_n(gone, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, gone, FUTEX_WAIT, 1, NULL, NULL, 0);
}

/* A thread that its tracer has not waited for yet would end as its process does. */
static void wait_reaped(long tid)
{
	while (!syscall(SYS_tgkill, getpid(), tid, 0))
		usleep(1000);
}

long run_clone(int (*body)(void *), void *argument, unsigned long flags)
{
	int gone;
	long tid = start_clone(body, argument, flags, &gone);

	if (tid > 0)
		wait_gone(&gone);
	if (tid > 0 && flags & CLONE_THREAD)
		wait_reaped(tid);
	return tid;
}
