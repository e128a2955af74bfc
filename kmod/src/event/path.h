/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Paths as text. Inline is what each open passes. Paths are those
 * below the root directory of the task. Context: atomic.
 */
#ifndef ETRACE_PATH_H
#define ETRACE_PATH_H

#include <linux/dcache.h>
#include <linux/fdtable.h>
#include <linux/file.h>

#include "event/user_memory.h"
#include "record/emit.h"

/* File of a descriptor of current. Not `counted`: nobody else can close it before current does. */
struct etrace_file {
	struct file *file; /* NULL: no such descriptor */
	bool counted;
};

/*
 * The rule of the kernel's own fdget(): a table of descriptors that only this task uses cannot
 * change while it is looked at. Acquire, as there since 7ee47dcfff18: the last other user may have
 * changed the table right before it let go of it.
 */
static inline struct etrace_file etrace_file_get(int fd)
{
	struct files_struct *files = current->files;

	if (fd < 0)
		return (struct etrace_file){ NULL, false };
	if (likely(atomic_read_acquire(&files->count) == 1))
		return (struct etrace_file){ files_lookup_fd_raw(files, fd), false };
	return (struct etrace_file){ fget_raw(fd), true };
}

static inline void etrace_file_put(struct etrace_file file)
{
	if (file.counted && file.file)
		fput(file.file);
}

/* Absent strings have a NULL text. */
static inline struct etrace_text etrace_text_of(const char *string)
{
	return (struct etrace_text){ string, string ? strlen(string) : 0 };
}

/* Results of d_path() other than the text up to the end of `buf`. */
struct etrace_text etrace_unusual_path_text(const struct path *path, char *text, char *buf,
					    size_t size);

/*
 * The path below current's root as the kernel prints it, without its mark of a deleted file, in
 * `buf` and ended by a null byte. Absent and counted when it does not fit. Atomic; under
 * rcu_read_lock() when the caller holds no reference.
 */
static inline struct etrace_text etrace_path_text(const struct path *path, char *buf, size_t size)
{
	char *text = d_path(path, buf, size);
	const struct dentry *dentry = path->dentry;

	if (IS_ERR(text) || unlikely(d_unlinked(dentry)) ||
	    unlikely(dentry->d_op && dentry->d_op->d_dname))
		return etrace_unusual_path_text(path, text, buf, size);
	return (struct etrace_text){ text, (size_t)(buf + size - 1 - text) };
}

/* The path of a hook's arguments. */
static inline struct etrace_text etrace_dentry_text(struct vfsmount *mnt, struct dentry *dentry,
						    char *buf, size_t size)
{
	struct path path = { .mnt = mnt, .dentry = dentry };

	return etrace_path_text(&path, buf, size);
}

/*
 * `dir`, which may be in `buf` of ETRACE_PATH_BYTES, and below it `name` of `len` bytes with its
 * null byte at the end, in `buf`; absent when that is too long.
 */
struct etrace_text etrace_join(struct etrace_text dir, const char *name, size_t len, char *buf);

/* Of the working directory; absent when it is too long. Atomic. */
struct etrace_text etrace_cwd_text(char *buf, size_t size);

/* The string is in the second half of `buf`, the directory is written to the end of the first. */
int etrace_put_directory(int dirfd, char *buf, struct etrace_text *text);

/*
 * A path as the task gave it, made absolute by putting the directory before it, in `buf` of
 * 2 * PATH_MAX bytes. -errno when it cannot be read or `dirfd` is not a descriptor; -ENAMETOOLONG
 * when the path of the directory is too long, which is counted. `later`: in
 * task_work, which brings back pages that are away.
 */
static __always_inline int etrace_user_path(int dirfd, u64 address, bool later, char *buf,
					    struct etrace_text *text)
{
	char *name = buf + PATH_MAX;
	long len = later ? etrace_user_string_later(name, address) :
			   etrace_user_string(name, address);

	if (len < 0)
		return len;
	*text = (struct etrace_text){ name, len };
	return name[0] == '/' ? 0 : etrace_put_directory(dirfd, buf, text);
}

/* In task_work, in `buf` of ETRACE_PATH_BYTES, using `scratch`; absent when it is unavailable. */
struct etrace_text etrace_given_path(int dirfd, u64 address, char *scratch, char *buf);

#endif /* ETRACE_PATH_H */
