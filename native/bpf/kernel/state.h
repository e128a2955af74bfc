/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs share: settings, traced tasks, the ring buffer and the space to build a record in. */
#ifndef ETRACE_BPF_STATE_H
#define ETRACE_BPF_STATE_H

#include "kernel.h"

#include "bpf/record.h"

/* ---- settings, written before the programs are loaded ---- */

const volatile u8 call_kinds[2 * N_CALL_NUMBERS]; /* native, then 32 bits */
const volatile bool wants_environment;
const volatile bool wants_mounts;
const volatile bool wants_thread_names;
const volatile bool wants_usage;
const volatile u32 page_bytes;
const volatile bool wants_writes;
const volatile bool wants_stderr;
const volatile bool wants_stdout;
const volatile bool adopts; /* the owner is traced itself, and all that it starts, */
const volatile u64 cgroup; /* or the members of this control group, unless it is 0 */
const volatile u32 cgroup_level;
const volatile bool is_limited; /* what the owner's user may not watch is left out */
const volatile u32 owner_uid;

/* ---- whose next child is the root of what is traced ---- */

u32 n_to_adopt; /* threads of the owner that are not traced yet */
u32 owner; /* its number in its own pid namespace; 0: nobody's */
u32 owner_namespace;
u32 owner_level; /* of this namespace, below the first one */
u64 owner_root; /* its root directory, and mount namespace */
u64 owner_mounts;

/* ---- traced tasks ---- */

#define N_HIGH_ERRORS 4

struct task {
	u32 lost;
	u8 call; /* that it is in; a filter that makes up a result leaves none */
	u8 seen; /* bits of events that a program saw, for the one that comes again */
	s64 value; /* of this call: flags of clone */
	u64 errors; /* bits of descriptors below 64 that lead where 2 does, by copies */
	u64 old_errors; /* those of them that a program found when it began */
	u32 high_errors[N_HIGH_ERRORS]; /* such descriptors from 64 up, in no order; 0: none */
	u32 old_high_errors; /* bits of those places that a program found when it began */
	u64 run_before; /* CPU time in ns when it was put on its processor, at this time */
	u64 on_since;
	u64 max_pages; /* of its memory, noted before that is given back */
};

enum { SEEN_CALL = 1, SEEN_EXEC = 2, SEEN_NAME = 4 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 18);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64); /* struct task_struct * */
	__type(value, struct task);
} tasks SEC(".maps");

/* ---- a call that has ended ---- */

struct call {
	u64 key;
	u32 pid;
	u8 kind;
	bool is_compat;
	u64 args[6];
	s64 result;
};

/* ---- the ring buffer ---- */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16); /* what was asked for takes its place */
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, N_LOSSES);
	__type(key, u32);
	__type(value, u64);
} losses SEC(".maps");

/* a power of two: every verifier understands a mask */
#define TEXT_BYTES 16384

/* A place in the text. The compiler knows ranges that the verifier does not, and must not use them. */
static __always_inline u64 place(u32 at)
{
	asm volatile("" : "+r"(at));
	return at & (TEXT_BYTES - 1);
}

#define PATH_DEPTH 256

struct scratch {
	struct record head;
	/* of which a record is sent from `head` on */
	char text[TEXT_BYTES + RECORD_TEXT_MAX];
	/* where note_name() is */
	u64 dentry;
	u64 mount;
	u64 root_dentry;
	u64 root_mount;
	u64 names[PATH_DEPTH]; /* of the components of a path, the last one first */
	u32 name_lens[PATH_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

#define READ(type, address, member) BPF_CORE_READ((type *)(address), member)

static __always_inline void count_loss(u32 reason)
{
	u64 *count = bpf_map_lookup_elem(&losses, &reason);

	if (count)
		*count += 1;
}

static __always_inline struct task *task_of(u64 key)
{
	return bpf_map_lookup_elem(&tasks, &key);
}

/* Whether an event of a task was seen, asked by the program that comes again; the first one leaves the bit. */
static __always_inline bool was_seen(struct task *task, u8 bit, bool is_again)
{
	bool is_set = task->seen & bit;

	if (!is_again)
		task->seen |= bit;
	else
		task->seen &= ~bit;
	return is_again && is_set;
}

static __always_inline struct scratch *scratch_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/* ---- numbers of tasks ---- */

/* The number that a task has in the pid namespace of etrace-bpf. */
static __always_inline u32 pid_of(struct task_struct *of)
{
	struct pid *pid = BPF_CORE_READ(of, thread_pid);
	u32 level = BPF_CORE_READ(pid, level) < owner_level ? 0 : owner_level;
	u64 at = (u64)pid + bpf_core_field_offset(struct pid, numbers) +
		 (u64)level * bpf_core_type_size(struct upid);

	return (u32)BPF_CORE_READ((struct upid *)at, nr);
}

static __always_inline u32 current_pid(void)
{
	return pid_of((struct task_struct *)bpf_get_current_task());
}

/* Whether a task is one of the process whose next child will be traced. */
static __always_inline bool is_owner(struct task_struct *of)
{
	struct pid *pid = BPF_CORE_READ(of, group_leader, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	u64 at = (u64)pid + bpf_core_field_offset(struct pid, numbers) +
		 (u64)level * bpf_core_type_size(struct upid);

	if ((u32)BPF_CORE_READ((struct upid *)at, nr) != owner ||
	    BPF_CORE_READ((struct upid *)at, ns, ns.inum) != owner_namespace)
		return false;
	owner_level = level;
	owner_root = (u64)BPF_CORE_READ(of, fs, root.dentry);
	owner_mounts = (u64)BPF_CORE_READ(of, nsproxy, mnt_ns);
	return true;
}

/* Whether names mean something else for a task than for etrace-bpf: RECORD_FOREIGN, or 0. */
static __always_inline u8 foreign_flag(void)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();

	return (u64)BPF_CORE_READ(current, fs, root.dentry) != owner_root ||
			       (u64)BPF_CORE_READ(current, nsproxy, mnt_ns) != owner_mounts ?
		       RECORD_FOREIGN :
		       0;
}

/* ---- records ---- */

/* The reader looks every few milliseconds; it is woken when this much waits for it. */
const volatile u32 wake_bytes;

static __always_inline u64 wake_flags(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > wake_bytes ? BPF_RB_FORCE_WAKEUP :
									   BPF_RB_NO_WAKEUP;
}

static __always_inline void head_begin(struct record *head, u64 key, u32 pid, u8 kind)
{
	head->task = key;
	head->time_ns = bpf_ktime_get_ns();
	head->pid = pid;
	head->cpu = bpf_get_smp_processor_id();
	head->kind = kind;
	head->flags = 0;
	head->lost = 0;
	head->values[0] = head->values[1] = head->values[2] = head->values[3] = 0;
	head->lens[0] = head->lens[1] = head->lens[2] = 0;
	head->lens[3] = head->lens[4] = 0;
	head->unread = 0;
	head->found = 0;
}

static __always_inline struct scratch *record_begin(u64 key, u32 pid, u8 kind)
{
	struct scratch *scratch = scratch_get();

	if (scratch)
		head_begin(&scratch->head, key, pid, kind);
	return scratch;
}

/* `flags` are those of bpf_ringbuf_output(). */
static __always_inline void put_bytes(struct task *task, struct record *head, u32 bytes, u64 flags)
{
	if (task) {
		head->lost = task->lost;
		task->lost = 0;
	}
	if (bpf_ringbuf_output(&ring, head, bytes, flags)) {
		count_loss(LOSS_RING_FULL);
		if (task)
			task->lost = head->lost + 1;
	}
}

/* A record without strings, from the stack. */
static __always_inline void put_plain(struct task *task, u64 key, u32 pid, u8 kind, s64 a, s64 b,
				      s64 c, s64 d)
{
	struct record head;

	head_begin(&head, key, pid, kind);
	head.values[0] = a;
	head.values[1] = b;
	head.values[2] = c;
	head.values[3] = d;
	put_bytes(task, &head, sizeof(head), wake_flags());
}

/* The reader is to look at once. */
static __always_inline void put_urgent(struct task *task, u64 key, u32 pid, u8 kind)
{
	struct record head;

	head_begin(&head, key, pid, kind);
	put_bytes(task, &head, sizeof(head), BPF_RB_FORCE_WAKEUP);
}

/* The record of the scratch with `bytes` bytes of text. */
static __always_inline void record_put(struct task *task, struct scratch *scratch, u32 bytes, u64 flags)
{
	put_bytes(task, &scratch->head, sizeof(struct record) + (u32)place(bytes), flags);
}

/* At most a chunk of the `n` bytes at an address of the running program, with two values of their kind. */
static __always_inline int put_memory(u64 key, u32 pid, u8 kind, s64 a, s64 b, u64 address, u64 n)
{
	struct scratch *scratch = scratch_get();
	struct task *task = task_of(key);

	if (!scratch || !task)
		return 0;
	if (n > RECORD_CHUNK)
		n = RECORD_CHUNK;
	head_begin(&scratch->head, key, pid, kind);
	scratch->head.values[0] = a;
	scratch->head.values[1] = b;
	scratch->head.lens[0] = (u16)n;
	if (bpf_probe_read_user(scratch->text, (u32)place((u32)n), (void *)address))
		scratch->head.flags |= RECORD_UNREAD;
	record_put(task, scratch, (u32)n, wake_flags());
	return 0;
}

#endif /* ETRACE_BPF_STATE_H */
