// SPDX-License-Identifier: Apache-2.0
/*
 * Name resolution for a traced task by its tracer. A task with the tracer's own root and mount
 * namespace sees what the tracer sees. For any other the name is looked up below /proc/TID/root
 * with RESOLVE_IN_ROOT (Linux 5.6), so that absolute symbolic links stay inside that root.
 *
 * /proc/self would mean the tracer: such names are rewritten to the task's number first.
 */
#include "resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LITERAL_STARTS(text, prefix) (!strncmp((text), (prefix), sizeof(prefix) - 1))

/* Names that every process sees differently, as they are for the task. */
static const char *own_name(const struct task *task, const char *path, char buf[JOINED_MAX])
{
	if (LITERAL_STARTS(path, "/proc/self/"))
		snprintf(buf, JOINED_MAX, "/proc/%d/%s", task->tgid, path + 11);
	else if (LITERAL_STARTS(path, "/proc/thread-self/"))
		snprintf(buf, JOINED_MAX, "/proc/%d/task/%d/%s", task->tgid, task->tid, path + 18);
	else if (LITERAL_STARTS(path, "/dev/fd/"))
		snprintf(buf, JOINED_MAX, "/proc/%d/fd/%s", task->tgid, path + 8);
	else
		return path;
	return buf;
}

static int open_foreign(const struct task *task, const char *path, int flags)
{
	struct open_how how = { .flags = (u64)flags, .resolve = RESOLVE_IN_ROOT };
	char name[PROC_NAME_MAX];
	int root;
	int fd;

	proc_name(name, task->tid, "root");
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(root);
	return fd;
}

/* Whether names mean something else for the task than for the tracer. */
static bool is_elsewhere(struct task *task)
{
	return task->fs->foreign || path_root(task)[0];
}

int open_in_task(struct task *task, const char *path, int flags)
{
	char buf[JOINED_MAX];
	int fd;

	path = own_name(task, path, buf);
	if (is_elsewhere(task))
		return open_foreign(task, path, flags | O_CLOEXEC);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool resolve_whole(struct task *task, struct path *path)
{
	int fd = open_in_task(task, path->text, O_PATH);
	bool done;

	if (fd < 0)
		return false;
	done = path_of_own_fd(task, fd, path);
	close(fd);
	return done;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static void strip_slashes(struct path *path)
{
	while (path->len > 1 && path->text[path->len - 1] == '/')
		path->text[--path->len] = '\0';
}

static void append(struct path *path, const char *name)
{
	size_t len = strlen(name);

	if (path->len && path->text[path->len - 1] == '/')
		path->len--;
	if (path->len + 1 + len >= sizeof(path->text))
		return;
	path->text[path->len] = '/';
	memcpy(path->text + path->len + 1, name, len + 1);
	path->len += 1 + len;
}

bool resolve_directories(struct task *task, struct path *path)
{
	struct path directory;
	const char *slash;

	strip_slashes(path);
	slash = strrchr(path->text, '/');
	if (!slash || is_dots(slash + 1))
		return resolve_whole(task, path);
	if (!slash[1]) /* the root directory */
		return true;
	path_set(&directory, path->text, slash == path->text ? 1 : (size_t)(slash - path->text));
	if (!resolve_whole(task, &directory))
		return false;
	append(&directory, slash + 1);
	path_set(path, directory.text, directory.len);
	return true;
}

bool stat_in_task(struct task *task, const struct path *path, int flags, struct stat *st)
{
	char buf[JOINED_MAX];
	int no_follow = flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;
	bool done;
	int fd;

	if (!is_elsewhere(task))
		return fstatat(AT_FDCWD, own_name(task, path->text, buf), st, flags) == 0;
	fd = open_in_task(task, path->text, O_PATH | no_follow);
	if (fd < 0)
		return false;
	done = fstat(fd, st) == 0;
	close(fd);
	return done;
}
