/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the running task may look up. A walk in the kernel's memory asks nobody, so it asks here, for every
 * directory: where it would say more than the task itself could learn, it ends, and the reader looks the
 * name up with the rights that the task had, which are sent to it.
 */
#ifndef ETRACE_BPF_RIGHTS_H
#define ETRACE_BPF_RIGHTS_H

#include "state.h"

#define SEARCH 1
#define GROUP_SHIFT 3
#define USER_SHIFT 6
#define GROUP_BITS 070
#define OVERLAYFS_MAGIC 0x794c7630
#define READS_ALL (1ULL << 1 | 1ULL << 2) /* CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH */
#define GROUP_STEPS 17 /* a list has 65,536 at most, in order */

/*
 * Who asks for the running task: its user and groups. A program that its file has raised (set-uid, set-gid) asks
 * for its caller, who chose its arguments. As set() of native/capture/rights.c.
 */
struct asker {
	u32 uid, gid;
	u64 capabilities; /* of root; those in a user namespace of its own count for nothing */
	bool is_raised;
};

static __always_inline struct asker asker_of(const struct cred *cred)
{
	u32 real_uid = BPF_CORE_READ(cred, uid.val), real_gid = BPF_CORE_READ(cred, gid.val);
	struct asker asker = {};

	asker.uid = BPF_CORE_READ(cred, fsuid.val);
	asker.gid = BPF_CORE_READ(cred, fsgid.val);
	if (!asker.uid && !real_uid && !BPF_CORE_READ(cred, user_ns, level))
		bpf_probe_read_kernel(&asker.capabilities, sizeof(asker.capabilities),
				      (void *)cred + bpf_core_field_offset(struct cred, cap_effective));
	asker.is_raised = real_uid && (asker.uid != real_uid || asker.gid != real_gid);
	if (asker.is_raised) {
		asker.uid = real_uid;
		asker.gid = real_gid;
	}
	return asker;
}

/* Whether the running task has a group beside its first. */
__attribute__((noinline)) int is_in_group(u32 gid)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct group_info *groups = BPF_CORE_READ(current, cred, group_info);
	u64 list = (u64)groups + bpf_core_field_offset(struct group_info, gid);
	u32 first = 0, end = (u32)BPF_CORE_READ(groups, ngroups);
	int i;

	for (i = 0; i < GROUP_STEPS; i++) {
		u32 middle = (first + end) / 2;
		u32 found = 0;

		if (first >= end)
			break;
		bpf_probe_read_kernel(&found, sizeof(found), (void *)(list + (u64)middle * sizeof(found)));
		if (found == gid)
			return 1;
		if (found < gid)
			first = middle + 1;
		else
			end = middle;
	}
	return 0;
}

/* Whether files of a mount have the owners that their inodes name. */
__attribute__((noinline)) int has_plain_owners(u64 mount)
{
	u64 vfsmount = mount + bpf_core_field_offset(struct mount, mnt);
	u64 map;

	if (bpf_core_field_exists(struct vfsmount___since_6_2, mnt_idmap)) {
		map = (u64)READ(struct vfsmount___since_6_2, vfsmount, mnt_idmap);
		if (bpf_core_field_exists(struct mnt_idmap___since_6_5, uid_map))
			return !READ(struct mnt_idmap___since_6_5, map, uid_map.nr_extents);
		return !BPF_CORE_READ((struct mnt_idmap___before_6_5 *)map, owner, level);
	}
	if (bpf_core_field_exists(struct vfsmount___since_5_12, mnt_userns))
		return !BPF_CORE_READ((struct vfsmount___since_5_12 *)vfsmount, mnt_userns, level);
	return 1;
}

/* Whether an access list may decide, which is not looked into: one that is there, or is not known. */
static __always_inline bool may_have_list(u64 inode, u32 mode)
{
	return bpf_core_field_exists(struct inode, i_acl) && mode & GROUP_BITS && READ(struct inode, inode, i_acl);
}

/*
 * Whether the running task may look names up in a directory, by its mode. False where something else decides
 * or may decide: an access list, the file system, a map of owners.
 */
__attribute__((noinline)) int may_search(u64 mount, u64 dentry)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct asker asker = asker_of(BPF_CORE_READ(current, cred));
	u64 inode = (u64)READ(struct dentry, dentry, d_inode);
	u64 magic = BPF_CORE_READ((struct dentry *)dentry, d_sb, s_magic);
	u32 mode, gid;

	if (asker.capabilities & READS_ALL)
		return 1;
	if (!inode || !has_plain_owners(mount) ||
	    (magic != OVERLAYFS_MAGIC && BPF_CORE_READ((struct inode *)inode, i_op, permission)))
		return 0;
	mode = READ(struct inode, inode, i_mode);
	if (READ(struct inode, inode, i_uid.val) == asker.uid)
		return mode >> USER_SHIFT & SEARCH;
	if (may_have_list(inode, mode))
		return 0;
	gid = READ(struct inode, inode, i_gid.val);
	if (gid == asker.gid || is_in_group(gid))
		return mode >> GROUP_SHIFT & SEARCH;
	return mode & SEARCH;
}

/* ---- for the reader ---- */

static __always_inline u32 put_root(struct scratch *scratch, u32 at)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct fs_struct *fs = BPF_CORE_READ(current, fs);
	u64 mount = (u64)BPF_CORE_READ(fs, root.mnt) - bpf_core_field_offset(struct mount, mnt);
	struct record_root root = {};

	root.inode = BPF_CORE_READ(fs, root.dentry, d_inode, i_ino);
	root.mount = (u32)READ(struct mount, mount, mnt_id);
	root.is_mounted = (u64)READ(struct mount, mount, mnt.mnt_root) == (u64)BPF_CORE_READ(fs, root.dentry);
	bpf_probe_read_kernel(scratch->text + place(at), sizeof(root), &root);
	scratch->head.lens[1] = sizeof(root);
	return at + sizeof(root);
}

/* Send the rights of the running task, before a record with names: a reader with those of root takes them. */
__attribute__((noinline)) int put_rights(u64 key, u32 pid)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	const struct cred *cred = BPF_CORE_READ(current, cred);
	struct group_info *groups = BPF_CORE_READ(cred, group_info);
	struct asker asker;
	u32 n = (u32)BPF_CORE_READ(groups, ngroups);
	struct scratch *scratch;
	u32 bytes = 0;

	if (is_limited)
		return 0;
	scratch = record_begin(key, pid, RECORD_RIGHTS);
	if (!scratch)
		return 0;
	asker = asker_of(cred);
	scratch->head.values[0] = (s64)(asker.uid | (u64)asker.gid << 32);
	scratch->head.values[1] = asker.is_raised;
	scratch->head.values[2] = (s64)asker.capabilities;
	scratch->head.values[3] = -1;
	if (n <= RECORD_MOST_GROUPS) {
		bytes = n * (u32)sizeof(u32);
		scratch->head.values[3] = n;
		if (bpf_probe_read_kernel(scratch->text, (u32)place(bytes),
					  (void *)groups + bpf_core_field_offset(struct group_info, gid)))
			scratch->head.values[3] = -1;
	}
	scratch->head.lens[0] = (u16)bytes;
	bytes = put_root(scratch, bytes);
	record_put(task_of(key), scratch, bytes, wake_flags());
	return 0;
}

#endif /* ETRACE_BPF_RIGHTS_H */
