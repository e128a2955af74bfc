// SPDX-License-Identifier: Apache-2.0
/*
 * Paths of descriptors and names. A descriptor that is opened here is closed before the function
 * returns; it is of no use (O_PATH) and is not inherited.
 */
#include "paths.h"

#include <linux/stat.h>

#define O_NOFOLLOW_X86 0400000
#define DELETED " (deleted)"

static const char link_prefix[] = LINK_PREFIX;

void path_link_of_fd(char name[LINK_MAX_BYTES], int fd)
{
	char digits[12];
	char *at = name + sizeof(link_prefix) - 1;
	int n = 0;

	copy(name, link_prefix, sizeof(link_prefix) - 1);
	do {
		digits[n++] = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd);
	while (n)
		*at++ = digits[--n];
	*at = '\0';
}

static void read_link(struct path *path, const char *name)
{
	long n = CALL4(__NR_readlinkat, AT_FDCWD, name, path->text, PATH_MAX);

	path->n = n > 0 && path->text[0] == '/' ? (size_t)n : 0;
	path->text[path->n] = '\0';
}

/* The kernel's mark, unless it is the file's own name. */
static void strip_deleted(struct path *path, int fd)
{
	const size_t n = sizeof(DELETED) - 1;
	struct statx open_file;
	struct statx named;

	if (path->n <= n || !is_same(path->text + path->n - n, DELETED))
		return;
	if (!CALL5(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &open_file) &&
	    open_file.stx_nlink &&
	    !CALL5(__NR_statx, AT_FDCWD, path->text, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &named) &&
	    named.stx_ino == open_file.stx_ino && named.stx_dev_minor == open_file.stx_dev_minor &&
	    named.stx_dev_major == open_file.stx_dev_major)
		return;
	path->n -= n;
	path->text[path->n] = '\0';
}

void path_strip_deleted(struct path *path)
{
	const size_t n = sizeof(DELETED) - 1;

	if (path->n <= n || !is_same(path->text + path->n - n, DELETED) ||
	    !CALL3(__NR_faccessat, AT_FDCWD, path->text, 0))
		return;
	path->n -= n;
	path->text[path->n] = '\0';
}

static void read_fd(struct path *path, int fd)
{
	char name[LINK_MAX_BYTES];
	long n;

	path_link_of_fd(name, fd);
	n = CALL4(__NR_readlinkat, AT_FDCWD, name, path->text, PATH_MAX);
	path->n = n > 0 ? (size_t)n : 0; /* pipes and sockets have names too */
	path->text[path->n] = '\0';
	strip_deleted(path, fd);
}

void path_of_fd(struct path *path, int fd)
{
	path->n = 0;
	if (fd >= 0)
		read_fd(path, fd);
}

void path_of_cwd(struct path *path)
{
	long n = CALL2(__NR_getcwd, path->text, PATH_MAX);

	path->n = n > 1 && path->text[0] == '/' ? (size_t)n - 1 : 0;
	path->text[path->n] = '\0';
}

void path_of_program(struct path *path)
{
	read_link(path, "/proc/self/exe");
}

bool path_resolve(struct path *path, int dirfd, const char *name, int flags)
{
	long fd = CALL4(__NR_openat, dirfd, name, O_PATH | O_CLOEXEC | flags, 0);

	path->n = 0;
	if (fd < 0)
		return false;
	read_fd(path, (int)fd);
	CALL1(__NR_close, fd);
	return path->n > 0;
}

static bool is_dots(const char *name, size_t n)
{
	return (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.');
}

static bool append(struct path *path, const char *name, size_t n)
{
	if (path->n + 1 + n > PATH_MAX)
		return false;
	if (path->text[path->n - 1] != '/')
		path->text[path->n++] = '/';
	copy(path->text + path->n, name, n);
	path->n += n;
	path->text[path->n] = '\0';
	return true;
}

bool path_resolve_directories(struct path *path, int dirfd, const char *name)
{
	char directory[PATH_MAX + 1];
	size_t n = length(name);
	size_t start;

	path->n = 0;
	if (!n || n > PATH_MAX)
		return false;
	while (n > 1 && name[n - 1] == '/')
		n--;
	for (start = n; start && name[start - 1] != '/'; start--)
		;
	if (is_dots(name + start, n - start) || n == start)
		return path_resolve(path, dirfd, name, 0);
	if (!start) {
		directory[0] = '.';
		directory[1] = '\0';
	} else {
		copy(directory, name, start);
		directory[start] = '\0';
	}
	if (path_resolve(path, dirfd, directory, 0) && append(path, name + start, n - start))
		return true;
	path->n = 0;
	return false;
}
