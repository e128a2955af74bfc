/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What these programs read of the kernel: only the members that they need. libbpf finds where a member is
 * in the running kernel (CO-RE), so nothing here depends on the kernel of the machine that built it.
 */
#ifndef ETRACE_BPF_KERNEL_H
#define ETRACE_BPF_KERNEL_H

#include <stdbool.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

/* names that <bpf/bpf_helpers.h> uses */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

enum { BPF_ANY = 0 };
enum { BPF_F_NO_PREALLOC = 1 };
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	u32 len;
	const unsigned char *name;
};

typedef struct {
	u32 val;
} kuid_t, kgid_t;

typedef struct {
	u64 bits;
} kernel_cap_t;

struct user_namespace {
	int level;
};

struct super_block {
	unsigned long s_magic;
};

struct inode_operations {
	void *permission;
};

struct posix_acl;

struct inode {
	unsigned short i_mode;
	kuid_t i_uid;
	kgid_t i_gid;
	struct posix_acl *i_acl;
	const struct inode_operations *i_op;
	unsigned long i_ino;
	char *i_link;
};

struct list_head {
	struct list_head *next;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct dentry___since_6_8 {
	struct hlist_node d_sib;
	struct hlist_head d_children;
};

struct dentry___before_6_8 {
	struct list_head d_child;
	struct list_head d_subdirs;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
};

struct uid_gid_map {
	u32 nr_extents;
};

struct mnt_idmap___since_6_5 {
	struct uid_gid_map uid_map;
};

struct mnt_idmap___before_6_5 {
	struct user_namespace *owner;
};

struct mnt_idmap;

struct vfsmount___since_6_2 {
	struct mnt_idmap *mnt_idmap;
};

struct vfsmount___since_5_12 {
	struct user_namespace *mnt_userns;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mnt_namespace;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct list_head mnt_mounts, mnt_child;
	int mnt_id;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_flags;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *close_on_exec;
	unsigned long *open_fds;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct percpu_counter {
	s64 count;
};

struct mm_struct {
	unsigned long arg_start, arg_end, env_start, env_end;
	unsigned long hiwater_rss;
	struct percpu_counter rss_stat[4]; /* since Linux 6.2 */
};

typedef struct {
	s64 counter;
} atomic64_t;

struct mm_rss_stat {
	atomic64_t count[4];
};

typedef struct {
	unsigned long __mm_flags[1];
} mm_flags_t;

struct mm_struct___before_6_18 {
	unsigned long flags;
};

struct mm_struct___since_6_18 {
	mm_flags_t flags;
};

struct mm_struct___before_6_2 {
	struct mm_rss_stat rss_stat;
};

struct task_io_accounting {
	u64 rchar, wchar;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	unsigned int flags;
	struct list_head thread_head;
	u64 utime, stime;
	unsigned long nvcsw, nivcsw, cnvcsw, cnivcsw, min_flt, cmin_flt, maxrss;
	unsigned long long sum_sched_runtime;
	struct task_io_accounting ioac;
};

struct sched_entity {
	u64 exec_start, sum_exec_runtime;
};

struct thread_info {
	unsigned long flags;
	u32 status;
};

struct group_info {
	int ngroups;
	kgid_t gid[1];
};

struct cred {
	kuid_t uid, euid, suid, fsuid;
	kgid_t gid, egid, fsgid;
	kernel_cap_t cap_permitted, cap_effective;
	struct group_info *group_info;
	struct user_namespace *user_ns;
};

struct task_struct {
	const struct cred *cred;
	struct thread_info thread_info;
	int pid, tgid, exit_code;
	char comm[16];
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
	struct fs_struct *fs;
	struct nsproxy *nsproxy;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct sched_entity se;
	u64 utime, stime;
	unsigned long nvcsw, nivcsw;
	struct task_io_accounting ioac;
	struct list_head thread_node;
};

struct linux_binprm {
	struct file *file;
	const char *filename;
	const char *interp;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bx, cx, dx, si, di, bp, r8, r9, r10, ax, orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};
#else
#error "this architecture is not known"
#endif

#pragma clang attribute pop

#endif /* ETRACE_BPF_KERNEL_H */
