// SPDX-License-Identifier: Apache-2.0
/*
 * Paths that the kernel gives as links below /proc/TID (descriptors, root, working directory).
 *
 * The kernel prints such a link relative to the root directory of its reader, the tracer. Events
 * carry the task's view, as the kernel module's d_path() does: the text of /proc/TID/root is
 * removed from the front. In another mount namespace both are printed from that namespace's own
 * root, so the same rule holds. Root and working directory are cached until a traced call may have
 * changed them; renames and mounts by untraced processes are not noticed.
 */
#include "task/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "task/lookup.h"

#define DELETED " (deleted)"
#define DELETED_LEN (sizeof(DELETED) - 1)

static u64 generation = 1;

void path_invalidate_all(void)
{
	generation++;
}

void path_invalidate(struct fs_state *fs)
{
	fs->generation = 0;
}

/*
 * Whether a link text that ends in " (deleted)" says so of the file, or is the file's name: in the
 * second case the name leads to the very file.
 */
static bool is_deleted(const char *link, const char *text)
{
	struct stat open_file;
	struct stat named_file;
	bool found;
	int fd;

	if (!lookup_stat_link(link, &open_file) || !open_file.st_nlink)
		return true;
	fd = lookup_soon(text, O_NOFOLLOW);
	if (fd < 0)
		return true;
	found = lookup_stat_fd(fd, &named_file) && open_file.st_dev == named_file.st_dev &&
		open_file.st_ino == named_file.st_ino;
	close(fd);
	return !found;
}

/* Text of a link as the tracer sees it, without the kernel's mark of a deleted file. */
static ssize_t read_link(const char *link, char text[PATH_MAX])
{
	ssize_t len = readlink(link, text, PATH_MAX - 1);

	if (len < 0)
		return -1;
	text[len] = '\0';
	if ((size_t)len > DELETED_LEN && !strcmp(text + len - DELETED_LEN, DELETED) &&
	    is_deleted(link, text)) {
		len -= (ssize_t)DELETED_LEN;
		text[len] = '\0';
	}
	return len;
}

void path_set(struct path *path, const char *text, size_t len)
{
	if (len >= sizeof(path->text))
		len = sizeof(path->text) - 1;
	memcpy(path->text, text, len);
	path->text[len] = '\0';
	path->len = len;
}

static void set_below(struct path *path, const char *root, const char *text, size_t len)
{
	size_t root_len = strlen(root);

	if (root_len && len >= root_len && !memcmp(text, root, root_len) &&
	    (text[root_len] == '/' || !text[root_len])) {
		text += root_len;
		len -= root_len;
	}
	if (len)
		path_set(path, text, len);
	else
		path_set(path, "/", 1);
}

static void replace(char **string, const char *text)
{
	free(*string);
	*string = strdup(text);
	if (!*string)
		die("out of memory");
}

static void refresh(struct task *task)
{
	struct fs_state *fs = task->fs;
	char name[PROC_NAME_MAX];
	char text[PATH_MAX];
	struct path cwd;
	ssize_t len;

	proc_name(name, task->tid, "root");
	len = read_link(name, text);
	replace(&fs->root, len > 1 ? text : "");
	proc_name(name, task->tid, "cwd");
	len = read_link(name, text);
	if (len < 0 && errno == ENAMETOOLONG) { /* more than any call can name */
		replace(&fs->cwd, "");
		fs->generation = generation;
		return;
	}
	if (len < 0) { /* the task is gone: keep the known path, read it again next time */
		if (!fs->cwd)
			replace(&fs->cwd, "/");
		return;
	}
	set_below(&cwd, fs->root, text, (size_t)len);
	replace(&fs->cwd, cwd.text);
	fs->generation = generation;
}

const char *path_root(struct task *task)
{
	if (task->fs->generation != generation)
		refresh(task);
	return task->fs->root;
}

const char *path_cwd(struct task *task)
{
	if (task->fs->generation != generation)
		refresh(task);
	return task->fs->cwd;
}

static bool path_of_name(struct task *task, const char *name, struct path *path)
{
	char text[PATH_MAX];
	ssize_t len = read_link(name, text);

	if (len < 0)
		return false;
	set_below(path, path_root(task), text, (size_t)len);
	return true;
}

bool path_of_link(struct task *task, const char *link, struct path *path)
{
	char name[PROC_NAME_MAX];

	proc_name(name, task->tid, link);
	return path_of_name(task, name, path);
}

bool path_of_fd(struct task *task, int fd, struct path *path)
{
	char name[PROC_NAME_MAX];

	if (fd < 0)
		return false;
	proc_fd_name(name, task->tid, fd);
	return path_of_name(task, name, path);
}

bool path_of_own_fd(struct task *task, int fd, struct path *path)
{
	char name[PROC_NAME_MAX];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return path_of_name(task, name, path) && !proc_is_own(path->text);
}

bool path_extend(struct path *path, const char *text, size_t len)
{
	if (path->len + 1 + len >= sizeof(path->text))
		return false;
	if (len) {
		path->text[path->len] = '/';
		memcpy(path->text + path->len + 1, text, len);
		path->len += 1 + len;
		path->text[path->len] = '\0';
	}
	return true;
}

bool path_join(struct task *task, int dirfd, const char *text, size_t len, struct path *path)
{
	if (len && text[0] == '/') {
		path_set(path, text, len);
		return true;
	}
	if (dirfd == AT_FDCWD) {
		const char *cwd = path_cwd(task);

		if (!*cwd)
			return false;
		path_set(path, cwd, strlen(cwd));
	} else if (!path_of_fd(task, dirfd, path)) {
		return false;
	}
	return path_extend(path, text, len);
}

/* ---- names as the task sees them ---- */

/*
 * Name resolution for a traced task by its tracer. A task with the tracer's own root and mount
 * namespace sees what the tracer sees. For any other the name is looked up below /proc/TID/root
 * with RESOLVE_IN_ROOT (Linux 5.6), so that absolute symbolic links stay inside that root. The
 * tracer waits for no file system meanwhile: see lookup.h.
 *
 * /proc/self would mean the tracer: a link of the task's process at the begin of a name is read for it, and
 * nothing else of /proc is opened.
 */

#define LITERAL_STARTS(text, prefix) (!strncmp((text), (prefix), sizeof(prefix) - 1))

/* Links of a process, below its directory in /proc. */
#define LINK_MAX 32

/* Where the process's own directory ends in a name, or NULL: "/proc/self/", "/dev/" before "fd/", .. */
static const char *below_own_process(const struct task *task, const char *path)
{
	char own[LINK_MAX];
	int len = snprintf(own, sizeof(own), "/proc/%d/", task->tgid);

	if (LITERAL_STARTS(path, "/proc/self/"))
		return path + 11;
	if (LITERAL_STARTS(path, "/proc/thread-self/"))
		return path + 18;
	if (LITERAL_STARTS(path, "/dev/fd/"))
		return path + 5;
	return strncmp(path, own, (size_t)len) ? NULL : path + len;
}

static size_t link_len(const char *text)
{
	if (LITERAL_STARTS(text, "fd/"))
		return 3 + strspn(text + 3, "0123456789");
	if (LITERAL_STARTS(text, "root"))
		return 4;
	return LITERAL_STARTS(text, "cwd") || LITERAL_STARTS(text, "exe") ? 3 : 0;
}

/*
 * A name that begins with a link of the task's own process (/proc/self/fd/3/name): where that leads, and
 * the rest. The tracer reads the link and follows none. Returns whether it does, and whether it has no rest.
 */
static bool follow_own_link(struct task *task, struct path *path, bool *is_whole)
{
	const char *text = below_own_process(task, path->text);
	size_t len = text ? link_len(text) : 0;
	char link[LINK_MAX];
	struct path led;

	*is_whole = false;
	if (!len || len >= sizeof(link) || (text[len] && text[len] != '/'))
		return false;
	memcpy(link, text, len);
	link[len] = '\0';
	if (!path_of_link(task, link, &led))
		return false;
	*is_whole = !text[len];
	if (!*is_whole && !path_extend(&led, text + len + 1, strlen(text + len + 1)))
		return false;
	path_set(path, led.text, led.len);
	return true;
}

bool is_elsewhere(struct task *task)
{
	return task->fs->foreign || path_root(task)[0];
}

/* A descriptor of the file that `path` names for the task, opened for its name alone. */
static int open_in_task(struct task *task, const char *path, int flags)
{
	return lookup_open(task, path, flags, is_elsewhere(task));
}

bool resolve_whole(struct task *task, struct path *path)
{
	bool is_whole;
	bool done;
	int fd;

	if (follow_own_link(task, path, &is_whole) && is_whole)
		return true;
	fd = open_in_task(task, path->text, 0);
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
