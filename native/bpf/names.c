// SPDX-License-Identifier: Apache-2.0
/*
 * Names that a task gave to rename, link and the like, or that a program was executed by. The kernel's
 * record has the directory that a name starts from; what lies between is looked up here, a moment after
 * the call. A directory that is gone by then is taken as it was written.
 */
#include "bpf/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/proc.h"

static void set(struct name *name, const char *text, size_t len)
{
	if (len >= sizeof(name->text))
		len = sizeof(name->text) - 1;
	memcpy(name->text, text, len);
	name->text[len] = '\0';
	name->len = len;
}

static void append(struct name *name, const char *text, size_t len)
{
	size_t room = sizeof(name->text) - 1 - name->len;

	if (len > room)
		len = room;
	memcpy(name->text + name->len, text, len);
	name->len += len;
	name->text[name->len] = '\0';
}

void name_join(struct name *name, const struct etrace_text *directory, const struct etrace_text *text)
{
	if (text->len && text->text[0] == '/') {
		set(name, text->text, text->len);
		return;
	}
	set(name, directory->text, directory->len);
	if (text->len)
		append(name, "/", 1);
	append(name, text->text, text->len);
}

/* `of`: whose root directory, or 0 for that of this process. */
static int open_name(const char *text, int flags, pid_t of)
{
	struct open_how how = { .flags = (u64)flags | O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	char root_name[PROC_NAME_MAX];
	int root;
	int fd;

	if (!of)
		return open(text, flags | O_PATH | O_CLOEXEC);
	proc_name(root_name, of, "root");
	root = open(root_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root, text, &how, sizeof(how));
	close(root);
	return fd;
}

/* Where a descriptor of this process leads, as the task sees it. */
static bool path_of(int fd, pid_t of, struct name *name)
{
	char link[PROC_NAME_MAX];
	char root_name[PROC_NAME_MAX];
	char text[PATH_MAX];
	char root[PATH_MAX];
	ssize_t root_len = 0;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, text, sizeof(text));
	if (len <= 0 || len == sizeof(text))
		return false;
	if (of) {
		proc_name(root_name, of, "root");
		root_len = readlink(root_name, root, sizeof(root));
		if (root_len < 0 || root_len == sizeof(root))
			return false;
		if (root_len == 1 || len < root_len || memcmp(text, root, (size_t)root_len) ||
		    (len > root_len && text[root_len] != '/'))
			root_len = 0;
	}
	if (len == root_len)
		set(name, "/", 1);
	else
		set(name, text + root_len, (size_t)(len - root_len));
	return true;
}

bool name_resolve(struct name *name, pid_t of)
{
	int fd = open_name(name->text, 0, of);
	bool done = fd >= 0 && path_of(fd, of, name);

	if (fd >= 0)
		close(fd);
	return done;
}

bool name_exists(const struct name *name, pid_t of)
{
	int fd = open_name(name->text, O_NOFOLLOW, of);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool is_dots(const char *text)
{
	return !strcmp(text, ".") || !strcmp(text, "..");
}

/* Without empty parts and dots; a `..` takes the part before it, as where there is no symbolic link. */
static void tidy(struct name *name)
{
	char copy[NAME_MAX_BYTES];
	char *at = copy;
	char *part;

	memcpy(copy, name->text, name->len + 1);
	set(name, "", 0);
	while ((part = strsep(&at, "/"))) {
		if (!*part || !strcmp(part, "."))
			continue;
		if (!strcmp(part, "..")) {
			while (name->len && name->text[--name->len] != '/')
				;
			name->text[name->len] = '\0';
			continue;
		}
		append(name, "/", 1);
		append(name, part, strlen(part));
	}
	if (!name->len)
		set(name, "/", 1);
}

void name_resolve_directories(struct name *name, pid_t of)
{
	struct name directory;
	char *slash;

	while (name->len > 1 && name->text[name->len - 1] == '/')
		name->text[--name->len] = '\0';
	slash = strrchr(name->text, '/');
	if (!slash || !slash[1])
		return;
	if (is_dots(slash + 1)) {
		if (!name_resolve(name, of))
			tidy(name);
		return;
	}
	set(&directory, name->text, slash == name->text ? 1 : (size_t)(slash - name->text));
	if (!name_resolve(&directory, of)) {
		tidy(name);
		return;
	}
	if (directory.len > 1)
		append(&directory, "/", 1);
	append(&directory, slash + 1, strlen(slash + 1));
	set(name, directory.text, directory.len);
}
