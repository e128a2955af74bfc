/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A name that a task gave to a call -> its directory, as the kernel has it in memory: right after the call
 * that is where the call has gone. Entries are looked for among the children of a directory; names of a
 * directory with too many of them, and links that are not in memory, are left to the reader.
 */
#ifndef ETRACE_BPF_WALK_H
#define ETRACE_BPF_WALK_H

#include "path.h"
#include "rights.h"

#define WALK_TEXT 4096
#define WALK_PLACE(at) ((u32)(at) & (WALK_TEXT - 1))
#define SOME_CHILDREN 64
#define TIMES_SOME_CHILDREN 128
#define MOST_MOUNTS 1024
#define MOST_STACKED 8 /* of mounts on one directory */
#define MOST_PARTS 64
#define MOST_WALK_LINKS 8
#define S_IFMT 0170000
#define S_IFDIR 0040000
#define S_IFLNK 0120000

enum { WALK_ON = 1, WALK_FOUND = 0, WALK_UNKNOWN = -1, WALK_ABSENT = -2 };

struct walk {
	u64 dentry;
	u64 mount;
	u64 root_dentry;
	u64 root_mount;
	u64 node; /* of a list of children */
	u64 found; /* the child, or what is mounted on it */
	u32 at; /* of the next part */
	u32 n_links;
	char name[256];
	char text[2 * WALK_TEXT]; /* what is left of the name, from `at` on */
	char next[2 * WALK_TEXT];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

static __always_inline struct walk *walk_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&walks, &zero);
}

static __always_inline u32 walk_place(u32 at)
{
	asm volatile("" : "+r"(at));
	return at & (WALK_TEXT - 1);
}

/* Whether a dentry has the name of `len` bytes at `at`. One that is not hashed lost it to another file. */
__attribute__((noinline)) int has_name(u64 dentry, u32 at, u32 len)
{
	struct walk *walk = walk_get();
	u32 i;

	if (!walk || READ(struct dentry, dentry, d_name.len) != len || !READ(struct dentry, dentry, d_hash.pprev))
		return 0;
	if (bpf_probe_read_kernel_str(walk->name, sizeof(walk->name), READ(struct dentry, dentry, d_name.name)) < 0)
		return 0;
	for (i = 0; i < NAME_BYTES; i++) {
		if (i >= len)
			break;
		if (walk->name[i] != walk->text[walk_place(at + i)])
			return 0;
	}
	return 1;
}

/* The child with this name among some, from `walk->node` on, or 0. */
__attribute__((noinline)) u64 child_of_some(u64 head, u64 node_at, u32 at, u32 len)
{
	struct walk *walk = walk_get();
	u64 node;
	int i;

	if (!walk)
		return 0;
	node = walk->node;
	for (i = 0; i < SOME_CHILDREN; i++) {
		if (!node || node == head)
			break;
		if (has_name(node - node_at, at, len))
			return node - node_at;
		bpf_probe_read_kernel(&node, sizeof(node), (void *)node); /* both kinds of lists begin with `next` */
	}
	walk->node = node == head ? 0 : node;
	return 0;
}

/* The child of a directory with this name, or 0: the newest come first. */
__attribute__((noinline)) u64 child_of(u64 parent, u32 at, u32 len)
{
	struct walk *walk = walk_get();
	bool is_old = bpf_core_field_exists(struct dentry___before_6_8, d_subdirs);
	u64 head = is_old ? parent + bpf_core_field_offset(struct dentry___before_6_8, d_subdirs) : 0;
	u64 node_at = is_old ? bpf_core_field_offset(struct dentry___before_6_8, d_child) :
			       bpf_core_field_offset(struct dentry___since_6_8, d_sib);
	u64 child = 0;
	int i;

	if (!walk)
		return 0;
	walk->node = is_old ? (u64)READ(struct list_head, head, next) :
			      (u64)READ(struct dentry___since_6_8, parent, d_children.first);
	for (i = 0; i < TIMES_SOME_CHILDREN; i++) {
		child = child_of_some(head, node_at, at, len);
		if (child || !walk->node)
			break;
	}
	return child;
}

/*
 * The directory with this name in another, if the working directory is in it, or 0. Directories such as the
 * root have thousands of children in memory, most of them names that were looked for and are not there.
 */
__attribute__((noinline)) u64 child_on_the_way(u64 parent, u32 at, u32 len)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct fs_struct *fs = BPF_CORE_READ(current, fs);
	u64 mount = (u64)BPF_CORE_READ(fs, pwd.mnt) - bpf_core_field_offset(struct mount, mnt);
	u64 dentry = (u64)BPF_CORE_READ(fs, pwd.dentry);
	int i;

	for (i = 0; i < MOST_PARTS; i++) {
		u64 up = (u64)READ(struct dentry, dentry, d_parent);

		if (dentry == up || dentry == (u64)READ(struct mount, mount, mnt.mnt_root)) {
			up = (u64)READ(struct mount, mount, mnt_mountpoint);
			if (up == dentry)
				break;
			mount = (u64)READ(struct mount, mount, mnt_parent);
		} else if (up == parent && has_name(dentry, at, len)) {
			return dentry;
		}
		dentry = up;
	}
	return 0;
}

/* Go to what is mounted on `walk->found` of the mount; WALK_ON: something is, WALK_FOUND: nothing, WALK_UNKNOWN. */
__attribute__((noinline)) int walk_down(void)
{
	u64 node_at = bpf_core_field_offset(struct mount, mnt_child);
	struct walk *walk = walk_get();
	u64 head, node, mount;
	int i;

	if (!walk)
		return WALK_UNKNOWN;
	head = walk->mount + bpf_core_field_offset(struct mount, mnt_mounts);
	node = head;
	for (i = 0; i < MOST_MOUNTS; i++) {
		node = (u64)READ(struct list_head, node, next);
		if (!node || node == head)
			return WALK_FOUND;
		if ((u64)READ(struct mount, node - node_at, mnt_mountpoint) == walk->found) {
			mount = node - node_at;
			walk->mount = mount;
			walk->found = (u64)READ(struct mount, mount, mnt.mnt_root);
			return WALK_ON;
		}
	}
	return WALK_UNKNOWN;
}

static __always_inline int walk_up(struct walk *walk)
{
	int i;

	for (i = 0; i < MOST_STACKED; i++) {
		u64 dentry = walk->dentry, mount = walk->mount, above;

		if (dentry == walk->root_dentry && mount == walk->root_mount)
			return WALK_ON;
		if (dentry != (u64)READ(struct mount, mount, mnt.mnt_root)) {
			walk->dentry = (u64)READ(struct dentry, dentry, d_parent);
			return WALK_ON;
		}
		above = (u64)READ(struct mount, mount, mnt_parent);
		if (above == mount)
			return WALK_ON;
		walk->dentry = (u64)READ(struct mount, mount, mnt_mountpoint);
		walk->mount = above;
	}
	return WALK_UNKNOWN;
}

/* Put the target of a link before what is left of the name. */
static __always_inline int walk_link(struct walk *walk, u64 inode, u32 rest)
{
	const char *target = READ(struct inode, inode, i_link);
	long n;

	if (!target || ++walk->n_links > MOST_WALK_LINKS)
		return WALK_UNKNOWN;
	n = bpf_probe_read_kernel_str(walk->next, WALK_TEXT, target);
	if (n <= 1)
		return WALK_UNKNOWN;
	if (bpf_probe_read_kernel(walk->next + walk_place((u32)n - 1), WALK_TEXT, walk->text + walk_place(rest)))
		return WALK_UNKNOWN;
	if (bpf_probe_read_kernel(walk->text, WALK_TEXT, walk->next))
		return WALK_UNKNOWN;
	walk->text[WALK_TEXT - 1] = '\0';
	walk->at = 0;
	if (walk->text[0] == '/') {
		walk->dentry = walk->root_dentry;
		walk->mount = walk->root_mount;
	}
	return WALK_ON;
}

/* The bytes up to the next slash, or the end. */
__attribute__((noinline)) u32 part_len(u32 at)
{
	struct walk *walk = walk_get();
	u32 i;

	if (!walk)
		return 0;
	for (i = 0; i < NAME_BYTES; i++) {
		char byte = walk->text[walk_place(at + i)];

		if (!byte || byte == '/')
			break;
	}
	return i;
}

/* One part of the name. */
__attribute__((noinline)) int walk_part(void)
{
	struct walk *walk = walk_get();
	u64 child, inode, dentry;
	u32 at, len;
	int i;

	if (!walk)
		return WALK_UNKNOWN;
	at = walk->at;
	dentry = walk->dentry;
	if (walk->text[walk_place(at)] == '/') {
		inode = (u64)READ(struct dentry, dentry, d_inode);
		if ((READ(struct inode, inode, i_mode) & S_IFMT) != S_IFDIR)
			return WALK_ABSENT;
		walk->at = at + 1;
		return at + 1 < WALK_TEXT ? WALK_ON : WALK_UNKNOWN;
	}
	len = part_len(at);
	if (!len)
		return WALK_FOUND;
	if (!may_search(walk->mount, dentry))
		return WALK_UNKNOWN;
	walk->at = at + len;
	if (len == 1 && walk->text[walk_place(at)] == '.')
		return WALK_ON;
	if (len == 2 && walk->text[walk_place(at)] == '.' && walk->text[walk_place(at + 1)] == '.') {
		return walk_up(walk);
	}
	child = child_on_the_way(dentry, at, len);
	if (!child)
		child = child_of(dentry, at, len);
	if (!child)
		return WALK_UNKNOWN;
	inode = (u64)READ(struct dentry, child, d_inode);
	if (!inode)
		return WALK_ABSENT;
	if ((READ(struct inode, inode, i_mode) & S_IFMT) == S_IFLNK)
		return walk_link(walk, inode, at + len);
	walk->found = child;
	for (i = 0; i < MOST_STACKED; i++) {
		int down = walk_down();

		if (down == WALK_UNKNOWN)
			return WALK_UNKNOWN;
		if (down == WALK_FOUND) {
			walk->dentry = walk->found;
			return WALK_ON;
		}
	}
	return WALK_UNKNOWN;
}

/* Walk along the text, from where the walk is. */
__attribute__((noinline)) int walk_on(void)
{
	int found = WALK_ON;
	int i;

	for (i = 0; i < 2 * MOST_PARTS; i++) {
		found = walk_part();
		if (found != WALK_ON)
			break;
	}
	return found == WALK_ON ? WALK_UNKNOWN : found;
}

/* Where a name starts: the root, a descriptor's directory or the working directory. */
static __always_inline bool walk_begin(struct walk *walk, int dirfd)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct fs_struct *fs = BPF_CORE_READ(current, fs);
	u64 of_mount = bpf_core_field_offset(struct mount, mnt);
	u64 file;

	walk->at = 0;
	walk->n_links = 0;
	walk->root_dentry = (u64)BPF_CORE_READ(fs, root.dentry);
	walk->root_mount = (u64)BPF_CORE_READ(fs, root.mnt) - of_mount;
	if (walk->text[0] == '/') {
		walk->dentry = walk->root_dentry;
		walk->mount = walk->root_mount;
	} else if (dirfd == AT_FDCWD) {
		walk->dentry = (u64)BPF_CORE_READ(fs, pwd.dentry);
		walk->mount = (u64)BPF_CORE_READ(fs, pwd.mnt) - of_mount;
	} else {
		file = file_of(dirfd);
		if (!file)
			return false;
		walk->dentry = (u64)READ(struct file, file, f_path.dentry);
		walk->mount = (u64)READ(struct file, file, f_path.mnt) - of_mount;
	}
	return true;
}

/* Where the last part of the text of `len` bytes begins; the text's end where it is too long. */
__attribute__((noinline)) u32 last_part(u32 len)
{
	struct walk *walk = walk_get();
	u32 i;

	if (!walk)
		return len;
	for (i = 1; i <= NAME_BYTES + 1; i++) {
		if (i > len)
			return 0;
		if (walk->text[walk_place(len - i)] == '/')
			return len - i + 1;
	}
	return len;
}

/* End the text of `len` bytes before its last part; -1 where that is a dot, ends in a slash or is too long. */
static __always_inline int cut_last(struct walk *walk, u32 len)
{
	u32 begin = last_part(len);
	u32 n = len - begin;
	bool is_dot = walk->text[walk_place(begin)] == '.';

	if (begin >= len || (is_dot && (n == 1 || (n == 2 && walk->text[walk_place(begin + 1)] == '.'))))
		return -1;
	walk->text[walk_place(begin)] = '\0';
	return 0;
}

/* The path of the directory of the name at `name`, at `at` of the text; -1: the reader has to find it. */
__attribute__((noinline)) int walk_directory(u32 name, int dirfd, u32 at)
{
	struct scratch *scratch = scratch_get();
	struct walk *walk = walk_get();
	long n;

	if (!scratch || !walk)
		return -1;
	n = bpf_probe_read_kernel_str(walk->text, WALK_TEXT, scratch->text + place(name));
	if (n <= 1 || n >= WALK_TEXT || !walk_begin(walk, dirfd) || cut_last(walk, (u32)n - 1))
		return -1;
	if (walk_on() != WALK_FOUND)
		return -1;
	return put_path(walk->mount + bpf_core_field_offset(struct mount, mnt), walk->dentry, at);
}

/* The path of the file of the name at `name`, at `at` of the text; WALK_UNKNOWN, WALK_ABSENT. */
__attribute__((noinline)) int walk_file(u32 name, int dirfd, u32 at)
{
	struct scratch *scratch = scratch_get();
	struct walk *walk = walk_get();
	int found;
	long n;

	if (!scratch || !walk)
		return WALK_UNKNOWN;
	n = bpf_probe_read_kernel_str(walk->text, WALK_TEXT, scratch->text + place(name));
	if (n <= 1 || n >= WALK_TEXT || !walk_begin(walk, dirfd))
		return WALK_UNKNOWN;
	found = walk_on();
	if (found != WALK_FOUND)
		return found;
	return put_path(walk->mount + bpf_core_field_offset(struct mount, mnt), walk->dentry, at);
}

static __always_inline bool walk_take(struct walk *walk, const struct scratch *scratch, u32 name, u32 len)
{
	if (!len || len >= WALK_TEXT || bpf_probe_read_kernel(walk->text, WALK_TEXT, scratch->text + place(name)))
		return false;
	walk->text[walk_place(len)] = '\0';
	return true;
}

/* After walk_directory() of the name of `len` bytes at `name`: RECORD_TARGET_* of its last part, or 0. */
__attribute__((noinline)) int walk_last(u32 name, u32 len)
{
	struct scratch *scratch = scratch_get();
	struct walk *walk = walk_get();
	u32 begin;
	u64 child;

	if (!scratch || !walk || !walk_take(walk, scratch, name, len))
		return 0;
	begin = last_part(len);
	child = may_search(walk->mount, walk->dentry) ? child_of(walk->dentry, begin, len - begin) : 0;
	if (!child)
		return 0;
	return READ(struct dentry, child, d_inode) ? RECORD_TARGET_FOUND : RECORD_TARGET_ABSENT;
}

/*
 * After walk_directory(): the path of the file that the name of `len` bytes at `target` leads to from there, or
 * WALK_UNKNOWN, WALK_ABSENT.
 */
__attribute__((noinline)) int walk_target(u32 target, u32 len, u32 at)
{
	struct scratch *scratch = scratch_get();
	struct walk *walk = walk_get();
	int found;

	if (!scratch || !walk || !walk_take(walk, scratch, target, len))
		return WALK_UNKNOWN;
	walk->at = 0;
	walk->n_links = 0;
	if (walk->text[0] == '/') {
		walk->dentry = walk->root_dentry;
		walk->mount = walk->root_mount;
	}
	found = walk_on();
	if (found != WALK_FOUND)
		return found;
	return put_path(walk->mount + bpf_core_field_offset(struct mount, mnt), walk->dentry, at);
}

#endif /* ETRACE_BPF_WALK_H */
