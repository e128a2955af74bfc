/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The path of an open file, or of a directory of the task, as d_path() has it: from the file upwards
 * through mounts to the task's own root. Each function is checked by the verifier once, however often it
 * is called: they are global, and take numbers only.
 */
#ifndef ETRACE_BPF_PATH_H
#define ETRACE_BPF_PATH_H

#include "state.h"

#define NAME_BYTES 255

#define NO_NAME 0xffffffff /* the root of a mount: where that is mounted follows */

/*
 * Functions of one turn of a loop: the verifier looks at them once, and in the loop at little more than the
 * number of the turn.
 */

/* Note a name and go up; 0 at the root. */
__attribute__((noinline)) int note_name(u32 number)
{
	struct scratch *scratch = scratch_get();
	u64 dentry, mount, up;

	if (!scratch)
		return 0;
	dentry = scratch->dentry;
	mount = scratch->mount;
	if (dentry == scratch->root_dentry && mount == scratch->root_mount)
		return 0;
	number &= PATH_DEPTH - 1;
	up = (u64)READ(struct dentry, dentry, d_parent);
	if (dentry == up || dentry == (u64)READ(struct mount, mount, mnt.mnt_root)) {
		u64 above = (u64)READ(struct mount, mount, mnt_parent);

		if (above == mount || !above)
			return 0;
		up = (u64)READ(struct mount, mount, mnt_mountpoint);
		scratch->mount = above;
		scratch->name_lens[number] = NO_NAME;
	} else {
		scratch->names[number] = (u64)READ(struct dentry, dentry, d_name.name);
		scratch->name_lens[number] = READ(struct dentry, dentry, d_name.len);
	}
	scratch->dentry = up;
	return 1;
}

/* Note the names from `dentry` up to the root; return how many, or -1: too deep. */
__attribute__((noinline)) int note_names(u64 mnt, u64 dentry, u64 root_mnt, u64 root_dentry)
{
	struct scratch *scratch = scratch_get();
	int i;

	if (!scratch)
		return -1;
	scratch->dentry = dentry;
	scratch->mount = mnt - bpf_core_field_offset(struct mount, mnt);
	scratch->root_dentry = root_dentry;
	scratch->root_mount = root_mnt - bpf_core_field_offset(struct mount, mnt);
	for (i = 0; i < PATH_DEPTH; i++)
		if (!note_name(i))
			return i;
	return -1;
}

/* Put a noted name at `at` of the text; return the bytes, or -1. */
__attribute__((noinline)) int put_name(u32 number, u32 at)
{
	struct scratch *scratch = scratch_get();
	u32 len;

	if (!scratch)
		return -1;
	number &= PATH_DEPTH - 1;
	len = scratch->name_lens[number];
	if (len == NO_NAME)
		return 0;
	if (len > NAME_BYTES)
		len = NAME_BYTES;
	scratch->text[place(at)] = '/';
	if (bpf_probe_read_kernel(scratch->text + place(at + 1), len, (void *)scratch->names[number]))
		return -1;
	return (int)len + 1;
}

/* Put the first `n` noted names at `at` of the text, the last one first; return the bytes, or -1. */
__attribute__((noinline)) int put_names(u32 at, u32 n)
{
	struct scratch *scratch = scratch_get();
	u32 begin = at;
	u32 i;

	if (!scratch)
		return -1;
	for (i = 0; i < PATH_DEPTH; i++) {
		int len;

		if (i >= n)
			break;
		len = put_name(n - 1 - i, at);
		if (len < 0 || at - begin + (u32)len >= RECORD_TEXT_MAX)
			return -1;
		at += (u32)len;
	}
	if (at == begin)
		scratch->text[place(at++)] = '/';
	return (int)(at - begin);
}

/* The path of a dentry on a mount, as the running task sees it, at `at` of the text. */
__attribute__((noinline)) int put_path(u64 mnt, u64 dentry, u32 at)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct fs_struct *fs = BPF_CORE_READ(current, fs);
	int n;

	if (!mnt || !dentry)
		return -1;
	n = note_names(mnt, dentry, (u64)BPF_CORE_READ(fs, root.mnt), (u64)BPF_CORE_READ(fs, root.dentry));
	return n < 0 ? -1 : put_names(at, (u32)n);
}

/* A number in decimal digits after `[`, and `]`. */
static __always_inline u32 put_number(struct scratch *scratch, u32 at, u64 number)
{
	u64 rest = number;
	u32 n = 0;
	u32 i;

	for (i = 0; i < 20; i++) {
		n++;
		rest /= 10;
		if (!rest)
			break;
	}
	scratch->text[place(at)] = '[';
	for (i = 0; i < 20; i++) {
		if (i >= n)
			break;
		scratch->text[place(at + n - i)] = '0' + number % 10;
		number /= 10;
	}
	scratch->text[place(at + n + 1)] = ']';
	return n + 2;
}

#define PIPEFS_MAGIC 0x50495045
#define SOCKFS_MAGIC 0x534f434b

/* Files that have no name: pipe:[number]. */
__attribute__((noinline)) int put_nameless(u64 dentry, u64 magic, u32 at)
{
	struct scratch *scratch = scratch_get();
	u64 number = READ(struct dentry, dentry, d_inode) ? BPF_CORE_READ((struct dentry *)dentry, d_inode, i_ino) : 0;
	u32 n = magic == PIPEFS_MAGIC ? 5 : 7;

	if (!scratch)
		return -1;
	if (magic == PIPEFS_MAGIC)
		__builtin_memcpy(scratch->text + place(at), "pipe:", 5);
	else
		__builtin_memcpy(scratch->text + place(at), "socket:", 7);
	return (int)(n + put_number(scratch, at + n, number));
}

/* The path of an open file. */
__attribute__((noinline)) int put_file(u64 file, u32 at)
{
	u64 dentry = (u64)READ(struct file, file, f_path.dentry);
	u64 magic = BPF_CORE_READ((struct dentry *)dentry, d_sb, s_magic);

	if (!file)
		return -1;
	if (magic == PIPEFS_MAGIC || magic == SOCKFS_MAGIC)
		return put_nameless(dentry, magic, at);
	return put_path((u64)READ(struct file, file, f_path.mnt), dentry, at);
}

/* The file of a descriptor of the running task, or 0. */
__attribute__((noinline)) u64 file_of(int fd)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(current, files, fdt);
	struct file **files;
	u64 file = 0;

	if (!table || fd < 0 || (u32)fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

/* The directory that a name is looked up from, or nothing for an absolute name. */
#define AT_FDCWD -100

__attribute__((noinline)) int put_directory(int dirfd, u32 at)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct fs_struct *fs;

	if (dirfd != AT_FDCWD) {
		u64 file = file_of(dirfd);

		return file ? put_file(file, at) : -1;
	}
	fs = BPF_CORE_READ(current, fs);
	return put_path((u64)BPF_CORE_READ(fs, pwd.mnt), (u64)BPF_CORE_READ(fs, pwd.dentry), at);
}

#define MOST_DIGITS 7

/* The descriptor that a name of /proc or /dev leads to, or -1. */
__attribute__((noinline)) int fd_in_name(u32 at)
{
	static const char prefixes[3][24] = { "/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/" };
	static const u8 lens[3] = { 8, 14, 21 };
	struct scratch *scratch = scratch_get();
	int fd = 0;
	int i, k;

	if (!scratch)
		return -1;
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 21; i++)
			if (i < lens[k] && scratch->text[place(at + i)] != prefixes[k][i])
				break;
		if (i == 21)
			break;
	}
	if (k == 3)
		return -1;
	at += lens[k];
	for (i = 0; i < MOST_DIGITS; i++) {
		char digit = scratch->text[place(at + i)];

		if (!digit)
			return i ? fd : -1;
		if (digit < '0' || digit > '9')
			return -1;
		fd = fd * 10 + (digit - '0');
	}
	return -1;
}

/* A string of the task; its length, or -1. */
static __always_inline int put_string(struct scratch *scratch, u64 address, u32 at)
{
	long n = bpf_probe_read_user_str(scratch->text + place(at), RECORD_TEXT_MAX, (void *)address);

	if (n > 0)
		return (int)(n - 1);
	return n ? -1 : 0; /* of an empty string, before Linux 6.13 */
}

#endif /* ETRACE_BPF_PATH_H */
