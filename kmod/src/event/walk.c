// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resolves a path of the task with the kernel's memory only: its cache of names, its mounts and
 * the symlinks in memory. It asks no file system, so it never waits: a lookup by the kernel may
 * wait for a server (FUSE, autofs, NFS) that is this task, or another one that waits for it. Names
 * that a call has just used are in memory; others are not found.
 * docs/decisions/0025-no-lookups.md. Context: task_work; spinlocks, no other sleep.
 */
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/stringhash.h>

#include "compat.h"
#include "event/names.h"
#include "event/path.h"

struct walk {
	struct path at; /* a reference is held */
	struct path root; /* of the task; a reference is held */
	char *rest; /* the remaining path; it ends with `buf` */
	char *buf;
	unsigned int n_links;
	bool follow; /* a symlink at the very end */
};

static int may_search(const struct path *dir)
{
	int err;

	if (!d_can_lookup(dir->dentry))
		return -ENOTDIR;
	rcu_read_lock(); /* as the kernel's own walk that must not block */
	err = etrace_path_permission(dir, MAY_EXEC | MAY_NOT_BLOCK);
	rcu_read_unlock();
	return err == -ECHILD ? -EAGAIN : err;
}

static void cross_mounts(struct path *path)
{
	while (d_mountpoint(path->dentry) && follow_down_one(path))
		;
}

static void go_up(struct walk *walk)
{
	struct path *at = &walk->at;
	struct dentry *parent;

	do {
		if (path_equal(at, &walk->root))
			break;
		if (at->dentry != at->mnt->mnt_root) {
			parent = dget_parent(at->dentry);
			dput(at->dentry);
			at->dentry = parent;
			break;
		}
	} while (follow_up(at));
	cross_mounts(at);
}

/* NULL: not in memory. Its reference is the caller's. */
static struct dentry *cached_child(struct dentry *dir, const char *name, size_t len)
{
	struct qstr string = QSTR_INIT(name, len);

	string.hash = full_name_hash(dir, name, (unsigned int)len);
	if (dir->d_flags & DCACHE_OP_HASH && dir->d_op->d_hash(dir, &string))
		return NULL;
	return d_lookup(dir, &string);
}

/* Put the target of a symlink before the remaining path. */
static int prepend(struct walk *walk, const char *target)
{
	size_t room = walk->rest - walk->buf;
	size_t len = strnlen(target, room + 1);

	if (len > room)
		return -ENAMETOOLONG;
	walk->rest -= len;
	memcpy(walk->rest, target, len);
	return 0;
}

static int read_target(struct walk *walk, const struct path *link)
{
	struct inode *inode = d_inode(link->dentry);
	const char *target;
	DEFINE_DELAYED_CALL(done);
	int err;

	rcu_read_lock();
	target = READ_ONCE(inode->i_link);
	if (!target) /* without a dentry a file system returns what it has in memory */
		target = inode->i_op->get_link(NULL, inode, &done);
	if (IS_ERR_OR_NULL(target)) /* ECHILD; links of /proc jump */
		err = -EAGAIN;
	else
		err = prepend(walk, target);
	do_delayed_call(&done);
	rcu_read_unlock();
	return err;
}

static void jump(struct walk *walk, const struct path *to)
{
	path_get(to);
	path_put(&walk->at);
	walk->at = *to;
}

static int follow_link(struct walk *walk, const struct path *link)
{
	int err;

	if (++walk->n_links > MAXSYMLINKS || link->mnt->mnt_flags & MNT_NOSYMFOLLOW)
		return -ELOOP;
	err = read_target(walk, link);
	if (!err && walk->rest[0] == '/')
		jump(walk, &walk->root);
	return err;
}

/* `last`: nothing follows, not even a slash. */
static int go_down(struct walk *walk, const char *name, size_t len, bool last)
{
	struct path child = { .mnt = walk->at.mnt };
	int err = 0;

	child.dentry = cached_child(walk->at.dentry, name, len);
	if (!child.dentry)
		return -EAGAIN;
	mntget(child.mnt);
	cross_mounts(&child);
	if (d_is_negative(child.dentry))
		err = -ENOENT;
	else if (d_is_symlink(child.dentry) && !(last && !walk->follow))
		err = follow_link(walk, &child);
	else if (last || d_is_dir(child.dentry))
		jump(walk, &child);
	else
		err = -ENOTDIR;
	path_put(&child);
	return err;
}

static int step(struct walk *walk)
{
	const char *name = walk->rest;
	size_t len = strchrnul(name, '/') - name;
	int err = may_search(&walk->at);

	if (err)
		return err;
	walk->rest += len;
	if (len == 2 && !memcmp(name, "..", 2))
		go_up(walk);
	else if (len > 1 || (len == 1 && name[0] != '.'))
		err = go_down(walk, name, len, !*walk->rest);
	while (*walk->rest == '/' && !err)
		walk->rest++;
	return err;
}

static int walk_on(struct walk *walk)
{
	int err = 0;

	while (*walk->rest && !err)
		err = step(walk);
	return err;
}

int etrace_walk(const char *name, bool follow, char *buf, struct path *path)
{
	size_t len = strnlen(name, PATH_MAX);
	struct walk walk = { .buf = buf, .follow = follow, .rest = buf + PATH_MAX - len };
	int err;

	if (len == PATH_MAX || !len)
		return len ? -ENAMETOOLONG : -ENOENT;
	memcpy(walk.rest, name, len + 1);
	get_fs_root(current->fs, &walk.root);
	if (name[0] == '/') {
		walk.at = walk.root;
		path_get(&walk.at);
	} else {
		get_fs_pwd(current->fs, &walk.at);
	}
	err = walk_on(&walk);
	path_put(&walk.root);
	if (err)
		path_put(&walk.at);
	else
		*path = walk.at;
	if (err == -EAGAIN)
		etrace_count(ETRACE_COUNT_NOT_IN_MEMORY);
	return err;
}

struct etrace_text etrace_walk_text(const char *name, bool follow, char *buf)
{
	struct etrace_text text;
	struct path path;

	if (etrace_walk(name, follow, buf, &path))
		return (struct etrace_text){ NULL, 0 };
	text = etrace_path_text(&path, buf, ETRACE_PATH_BYTES);
	path_put(&path);
	return text;
}
