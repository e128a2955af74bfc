// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paths as text: of files and directories by the kernel's objects, and of names in the task's
 * memory. Context: atomic. All paths are relative to the root directory of the task.
 */
#include <linux/dcache.h>
#include <linux/fdtable.h>
#include <linux/file.h>

#include "compat.h"
#include "event/path.h"

#define DELETED " (deleted)"
#define DELETED_LEN (sizeof(DELETED) - 1)

static bool has_own_name(const struct dentry *dentry)
{
	return dentry->d_op && dentry->d_op->d_dname;
}

/* Files that never had a name (memfd) are marked as well. */
static bool is_marked(const struct path *path, const struct etrace_text *text)
{
	if (!d_unlinked(path->dentry) && !has_own_name(path->dentry))
		return false;
	return text->len > DELETED_LEN &&
	       !memcmp(text->text + text->len - DELETED_LEN, DELETED, DELETED_LEN);
}

struct etrace_text etrace_unusual_path_text(const struct path *path, char *start, char *buf,
					    size_t size)
{
	struct etrace_text text = { start, 0 };

	if (IS_ERR(start)) {
		etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
		return (struct etrace_text){ NULL, 0 };
	}
	text.len = has_own_name(path->dentry) ? strlen(start) : (size_t)(buf + size - 1 - start);
	if (is_marked(path, &text)) {
		text.len -= DELETED_LEN;
		start[text.len] = '\0';
	}
	return text;
}

struct etrace_text etrace_join(struct etrace_text dir, const char *name, size_t len, char *buf)
{
	if (dir.len == 1) /* the root directory */
		dir.len = 0;
	if (dir.len + 1 + len >= ETRACE_PATH_BYTES)
		return (struct etrace_text){ NULL, 0 };
	memmove(buf, dir.text, dir.len);
	buf[dir.len] = '/';
	memcpy(buf + dir.len + 1, name, len + 1);
	return (struct etrace_text){ buf, dir.len + 1 + len };
}

struct etrace_text etrace_cwd_text(char *buf, size_t size)
{
	struct etrace_text text;
	struct path cwd;

	rcu_read_lock();
	etrace_cwd_rcu(current->fs, &cwd);
	text = etrace_path_text(&cwd, buf, size);
	rcu_read_unlock();
	return text;
}

static int directory_text(int dirfd, char *buf, size_t size, struct etrace_text *text)
{
	struct etrace_file dir;

	if (dirfd == AT_FDCWD) {
		*text = etrace_cwd_text(buf, size);
		return text->text ? 0 : -ENAMETOOLONG;
	}
	dir = etrace_file_get(dirfd);
	if (!dir.file)
		return -EBADF;
	*text = etrace_path_text(&dir.file->f_path, buf, size);
	etrace_file_put(dir);
	return text->text ? 0 : -ENAMETOOLONG;
}

int etrace_put_directory(int dirfd, char *buf, struct etrace_text *text)
{
	struct etrace_text dir;
	char *start;
	int err = directory_text(dirfd, buf, PATH_MAX, &dir);

	if (err)
		return err;
	if (!text->len) {
		*text = dir;
		return 0;
	}
	start = buf + PATH_MAX - 1 - dir.len;
	if (start != dir.text)
		memmove(start, dir.text, dir.len);
	buf[PATH_MAX - 1] = '/';
	*text = (struct etrace_text){ start, dir.len + 1 + text->len };
	return 0;
}

struct etrace_text etrace_given_path(int dirfd, u64 address, char *scratch, char *buf)
{
	struct etrace_text text;

	if (etrace_user_path(dirfd, address, true, scratch, &text) ||
	    text.len >= ETRACE_PATH_BYTES)
		return (struct etrace_text){ NULL, 0 };
	memcpy(buf, text.text, text.len);
	buf[text.len] = '\0';
	return (struct etrace_text){ buf, text.len };
}
