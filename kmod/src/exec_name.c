// SPDX-License-Identifier: GPL-2.0-only
/*
 * PI and PP of an execution: the names under which a program was asked for and found, directories
 * resolved, the last symlink kept (compilers look at it: ccache, clang++, busybox). Links of /proc
 * and /dev/fd name nothing that lasts: what they lead to stands instead. A name is believed only if
 * it leads to the very file that the kernel loaded. Context: task_work, sleeps.
 */
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/namei.h>

#include "hooks.h"

#define FD_DIRECTORY "/dev/fd/" /* with a descriptor: what execveat puts before its name */

static bool is_proc_link(const struct dentry *dentry)
{
	return dentry->d_sb->s_magic == PROC_SUPER_MAGIC;
}

/* Puts what a link of /proc leads to into `path`. False when the link does not lead to `file`. */
static bool check_link(const char *name, const struct file *file, struct path *path)
{
	struct path target;
	bool ok;

	if (kern_path(name, LOOKUP_FOLLOW, &target))
		return false;
	ok = !file || d_inode(target.dentry) == file_inode(file);
	if (is_proc_link(path->dentry))
		swap(target, *path);
	path_put(&target);
	return ok;
}

/* Absent when there is no such file, or it is not `file` where that is given. */
static struct etrace_text look_up(const char *name, const struct file *file, char *buf)
{
	struct etrace_text text = { NULL, 0 };
	struct path path;
	bool ok;

	if (kern_path(name, 0, &path))
		return text;
	if (d_is_symlink(path.dentry))
		ok = check_link(name, file, &path);
	else
		ok = !file || d_inode(path.dentry) == file_inode(file);
	if (ok)
		text = etrace_path_text(&path, buf, ETRACE_PATH_BYTES);
	path_put(&path);
	return text;
}

/* Where such a link leads is where the kernel has gone: the file itself tells, without a lookup. */
static bool is_proc_name(const char *name)
{
	static const char *const directories[] = { "/proc/self/", "/proc/self/fd/", FD_DIRECTORY };
	size_t len = kbasename(name) - name;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(directories); i++)
		if (len == strlen(directories[i]) && !memcmp(name, directories[i], len))
			return true;
	return false;
}

/* The file may be renamed meanwhile: its old name lasts as long as the lock. */
static bool may_be_path_of(const char *name, const struct file *file)
{
	bool same;

	rcu_read_lock();
	same = !strcmp(kbasename(name),
		       (const char *)READ_ONCE(file->f_path.dentry->d_name.name));
	rcu_read_unlock();
	return same && name[0] == '/';
}

/* The most frequent case needs no lookup: the name is the path of the file itself. */
static struct etrace_text loaded_name(const char *name, const struct file *file, char *buf)
{
	bool settled = !name || is_proc_name(name);
	struct etrace_text text;

	if (settled || may_be_path_of(name, file)) {
		text = etrace_path_text(&file->f_path, buf, ETRACE_PATH_BYTES);
		if (settled || (text.text && !strcmp(name, text.text)))
			return text;
	}
	text = look_up(name, file, buf);
	if (!text.text)
		text = etrace_path_text(&file->f_path, buf, ETRACE_PATH_BYTES);
	return text;
}

/* Of a script, whose file is closed by now: as given when it is not there any more. */
static struct etrace_text script_name(const char *name, struct etrace_scratch *space)
{
	struct etrace_text text = look_up(name, NULL, space->third);
	struct etrace_text cwd;
	size_t len = strlen(name);

	if (text.text)
		return text;
	etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
	if (name[0] == '/')
		return (struct etrace_text){ name, len };
	cwd = etrace_cwd_text(space->path, sizeof(space->path));
	if (cwd.len == 1) /* the root directory */
		cwd.len = 0;
	if (cwd.len + 1 + len >= sizeof(space->third))
		return (struct etrace_text){ name, len };
	memcpy(space->third, cwd.text, cwd.len);
	space->third[cwd.len] = '/';
	memcpy(space->third + cwd.len + 1, name, len);
	return (struct etrace_text){ space->third, cwd.len + 1 + len };
}

/*
 * The name that was asked for. By a descriptor it begins with /dev/fd/N, which the execution may
 * have closed: the path of what the descriptor was takes its place.
 */
static const char *asked_name(const struct etrace_exec *exec, char *buf, size_t size)
{
	struct etrace_text dir;
	const char *rest;
	size_t len;

	if (!exec->dir)
		return exec->filename;
	dir = etrace_path_text(&exec->dir->f_path, buf, size);
	rest = strchrnul(exec->filename + strlen(FD_DIRECTORY), '/');
	len = strlen(rest);
	if (!dir.text || dir.len + len + 1 > size)
		return exec->filename;
	memmove(buf, dir.text, dir.len);
	memcpy(buf + dir.len, rest, len + 1);
	return buf;
}

void etrace_exec_names(const struct etrace_exec *exec, struct etrace_scratch *space,
		       struct etrace_text *interpreter, struct etrace_text *program)
{
	const char *asked = exec->filename ?
				    asked_name(exec, space->other, PATH_MAX) : NULL;

	if (exec->interp) {
		*program = script_name(asked, space);
		*interpreter = loaded_name(exec->interp, exec->file, space->path);
	} else {
		*interpreter = loaded_name(asked, exec->file, space->path);
		*program = *interpreter;
	}
	if (!interpreter->text) /* longer than any path can be given */
		*interpreter = etrace_text_of(asked ?: "");
	if (!program->text)
		*program = *interpreter;
}
