// SPDX-License-Identifier: Apache-2.0
/*
 * Name resolution for a traced task by its tracer. A task with the tracer's own root and mount
 * namespace sees what the tracer sees. For any other the name is looked up below /proc/TID/root
 * with RESOLVE_IN_ROOT (Linux 5.6), so that absolute symbolic links stay inside that root. The
 * tracer waits for no file system meanwhile: see lookup.h.
 *
 * /proc/self would mean the tracer: such names are rewritten to the task's number first.
 */
#include "task/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "task/lookup.h"

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

bool is_elsewhere(struct task *task)
{
	return task->fs->foreign || path_root(task)[0];
}

/* A descriptor of the file that `path` names for the task, opened for its name alone. */
static int open_in_task(struct task *task, const char *path, int flags)
{
	char buf[JOINED_MAX];

	return lookup_open(task, own_name(task, path, buf), flags, is_elsewhere(task));
}

bool resolve_whole(struct task *task, struct path *path)
{
	int fd = open_in_task(task, path->text, 0);
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
	int fd = open_in_task(task, path->text, flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
	bool done;

	if (fd < 0)
		return false;
	done = lookup_stat_fd(fd, st);
	close(fd);
	return done;
}
