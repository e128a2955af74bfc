// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names given by a task -> their files, as far as they are in memory (walk.c). Context:
 * task_work.
 */
#include <linux/fcntl.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "event/path.h"
#include "event/resolve.h"
#include "event/walk.h"

/* Where such a link leads is where the kernel has gone: the file itself tells. */
bool etrace_is_proc_name(const char *name)
{
	static const char *const directories[] = {
		"/proc/self/", "/proc/self/fd/", ETRACE_FD_DIRECTORY,
	};
	unsigned int i;
	size_t len;

	if (strncmp(name, "/proc/", strlen("/proc/")) && strncmp(name, "/dev/", strlen("/dev/")))
		return false;
	len = kbasename(name) - name;
	for (i = 0; i < ARRAY_SIZE(directories); i++)
		if (len == strlen(directories[i]) && !memcmp(name, directories[i], len))
			return true;
	return false;
}

struct etrace_text etrace_descriptor_name(const char *name, char *buf)
{
	struct etrace_text text = { NULL, 0 };
	struct etrace_file file;
	unsigned int fd;

	if (!etrace_is_proc_name(name) || kstrtouint(kbasename(name), 10, &fd))
		return text;
	file = etrace_file_get((int)fd);
	if (file.file)
		text = etrace_path_text(&file.file->f_path, buf, ETRACE_PATH_BYTES);
	etrace_file_put(file);
	return text;
}

/* The directory of `name`, followed, with the last component behind it. */
static struct etrace_text follow_parent(char *name, char *buf)
{
	char *slash = strrchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	struct etrace_text dir;

	if (slash > name)
		*slash = '\0';
	dir = etrace_walk_text(!slash ? "." : slash == name ? "/" : name, true, buf);
	return dir.text ? etrace_join(dir, last, strlen(last), buf) : dir;
}

/* Calls that take a last component as it is do so with slashes behind it too. */
static void strip_slashes(char *name, size_t len)
{
	while (len > 1 && name[len - 1] == '/')
		name[--len] = '\0';
}

struct etrace_text etrace_resolve(int dirfd, u64 address, bool follow, bool or_new, char *scratch,
				  char *buf)
{
	char *name = scratch + PATH_MAX;
	long len = etrace_user_string(name, address);
	struct etrace_text text = { name, len };

	if (len < 0)
		return (struct etrace_text){ NULL, 0 };
	strip_slashes(name, len);
	text.len = strlen(name);
	/* below the working directory the kernel looks by itself, however long its path is */
	if (name[0] != '/' && (dirfd != AT_FDCWD || !text.len)) {
		if (etrace_put_directory(dirfd, scratch, &text))
			return (struct etrace_text){ NULL, 0 };
		name = scratch + (text.text - scratch);
	}
	if (or_new && !follow) /* the name itself may be gone or new */
		return follow_parent(name, buf);
	text = follow ? etrace_descriptor_name(name, buf) : (struct etrace_text){ NULL, 0 };
	if (!text.text)
		text = etrace_walk_text(name, follow, buf);
	if (!text.text && or_new)
		text = follow_parent(name, buf);
	return text;
}
