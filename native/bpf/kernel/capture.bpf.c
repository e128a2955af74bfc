// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs that the kernel runs for etrace-bpf. All are at raw tracepoints with types (tp_btf), which
 * work where probes of functions and security hooks are refused: of system calls, forks, executions and
 * ends. A task that is not traced costs one look into a hash table.
 */
#include "calls.h"
#include "usage.h"

#include "format/etrace_builders.h"

char licence[] SEC("license") = "GPL";

/*
 * Before Linux 7.0 nothing preempts a program. Since then another task may: the space in which a record is
 * made belongs to the processor, so NAME_held keeps others from it; and the kernel leaves a program out that
 * another task has begun on this processor. That is rare, for it can happen at the very begin of NAME_held
 * only, and NAME_again, which comes after it, does what it would have done. kernel.c chooses.
 */
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

#define HELD(name, function, is_again)         \
	int name(u64 *ctx)                     \
	{                                      \
		bpf_preempt_disable();         \
		function(ctx, is_again);       \
		bpf_preempt_enable();          \
		return 0;                      \
	}

#define PROGRAMS(place, name, function)                    \
	SEC(place) int name(u64 *ctx)                      \
	{                                                  \
		function(ctx, false);                      \
		return 0;                                  \
	}                                                  \
	SEC(place) HELD(name##_held, function, false)      \
	SEC(place) HELD(name##_again, function, true)

/* ---- system calls ---- */

#define X32_BIT 0x40000000
#define TS_COMPAT 2
#define TIF_32BIT 22 /* arm64 */

static __always_inline bool is_compat(void)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();

#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(current, thread_info.status) & TS_COMPAT;
#else
	return BPF_CORE_READ(current, thread_info.flags) >> TIF_32BIT & 1;
#endif
}

static __always_inline u8 kind_of(u64 number, bool compat)
{
	u32 at;

#if defined(__TARGET_ARCH_x86)
	if (!compat)
		number &= ~(u64)X32_BIT;
#endif
	if (number >= N_CALL_NUMBERS)
		return CALL_NONE;
	at = (u32)number + (compat ? N_CALL_NUMBERS : 0);
	return at < sizeof(call_kinds) ? call_kinds[at] : CALL_NONE;
}

static __always_inline void read_arguments(u64 regs_at, bool compat, u64 *args)
{
	struct pt_regs *regs = (struct pt_regs *)regs_at;

#if defined(__TARGET_ARCH_x86)
	if (compat) {
		args[0] = (u32)BPF_CORE_READ(regs, bx);
		args[1] = (u32)BPF_CORE_READ(regs, cx);
		args[2] = (u32)BPF_CORE_READ(regs, dx);
		args[3] = (u32)BPF_CORE_READ(regs, si);
		args[4] = (u32)BPF_CORE_READ(regs, di);
		args[5] = (u32)BPF_CORE_READ(regs, bp);
		return;
	}
	args[0] = BPF_CORE_READ(regs, di);
	args[1] = BPF_CORE_READ(regs, si);
	args[2] = BPF_CORE_READ(regs, dx);
	args[3] = BPF_CORE_READ(regs, r10);
	args[4] = BPF_CORE_READ(regs, r8);
	args[5] = BPF_CORE_READ(regs, r9);
#else
	args[0] = BPF_CORE_READ(regs, orig_x0);
	args[1] = BPF_CORE_READ(regs, regs[1]);
	args[2] = BPF_CORE_READ(regs, regs[2]);
	args[3] = BPF_CORE_READ(regs, regs[3]);
	args[4] = BPF_CORE_READ(regs, regs[4]);
	args[5] = BPF_CORE_READ(regs, regs[5]);
#endif
}

/* The running task, if it is one to trace that ran before. */
static __always_inline struct task *adopt(u64 key)
{
	struct task_struct *current = (struct task_struct *)key;
	struct task entry = {};

	if (cgroup) {
		if (owner && is_owner(current))
			owner = 0; /* etrace-bpf itself: what it notes of it is known now */
		if (owner || bpf_get_current_ancestor_cgroup_id(cgroup_level) != cgroup)
			return NULL;
	} else {
		if (!owner || !is_owner(current))
			return NULL;
		__sync_fetch_and_add(&n_to_adopt, -1);
	}
	if (bpf_map_update_elem(&tasks, &key, &entry, BPF_ANY)) {
		count_loss(LOSS_TASKS_FULL);
		return NULL;
	}
	put_plain(task_of(key), key, pid_of(current), RECORD_ADOPTED, (s64)BPF_CORE_READ(current, group_leader), 0, 0, 0);
	return task_of(key);
}

static __always_inline void call_begins(u64 *ctx, bool is_again)
{
	u64 key = bpf_get_current_task();
	struct task *task = task_of(key);
	u64 args[6];
	bool compat;
	u32 pid;
	u8 kind;

	if (!task && adopts && n_to_adopt)
		task = adopt(key);
	if (!task || was_seen(task, SEEN_CALL, is_again))
		return;
	if (task->call != CALL_NONE) /* that it has ended was missed */
		count_loss(LOSS_MISSED);
	compat = is_compat();
	kind = kind_of(ctx[1], compat);
	task->call = kind;
	if (kind == CALL_EXIT || kind == CALL_EXIT_GROUP) { /* the memory is gone when the exit is seen */
		if (wants_usage)
			task->max_pages = memory_pages((struct task_struct *)key);
		return;
	}
	if (kind != CALL_EXECVE && kind != CALL_EXECVEAT && kind != CALL_CLOSE_RANGE && kind != CALL_CLONE &&
	    kind != CALL_CLONE3 && kind != CALL_OPENAT2)
		return;
	pid = current_pid();
	read_arguments(ctx[0], compat, args);
	switch (kind) {
	case CALL_CLOSE_RANGE:
		if (!((u32)args[2] & CLOSE_RANGE_CLOEXEC))
			put_closing(key, pid, 0, (u32)args[0], (u32)args[1]);
		break;
	case CALL_CLONE:
		task->value = (s64)args[0];
		break;
	case CALL_CLONE3: {
		struct { u64 flags, pidfd, child_tid, parent_tid, exit_signal; } clone = { 0 };

		bpf_probe_read_user(&clone, sizeof(clone), (void *)args[0]);
		task->value = (s64)(clone.flags | clone.exit_signal);
		break;
	}
	case CALL_OPENAT2: {
		u64 flags;

		task->value = bpf_probe_read_user(&flags, sizeof(flags), (void *)args[2]) ? -1 : (s64)flags;
		break;
	}
	case CALL_EXECVE:
		put_closing(key, pid, 1, 0, ~0U);
		put_exec_name(key, pid, -1, args[0]);
		break;
	case CALL_EXECVEAT:
		put_closing(key, pid, 1, 0, ~0U);
		put_exec_name(key, pid, (int)args[0], args[1]);
		break;
	}
}

PROGRAMS("tp_btf/sys_enter", at_call, call_begins)

static __always_inline void call_ends(u64 *ctx, bool is_again)
{
	u64 key = bpf_get_current_task();
	struct task *task = task_of(key);
	struct call call;

	if (!task)
		return;
	call.kind = task->call;
	task->call = CALL_NONE;
	if (call.kind == CALL_NONE || (!wants_writes && (call.kind == CALL_WRITE || call.kind == CALL_WRITEV)))
		return;
	call.is_compat = is_compat();
	call.key = key;
	call.pid = current_pid();
	call.result = (s64)ctx[1];
	read_arguments(ctx[0], call.is_compat, call.args);
	call_ended(task, &call);
}

PROGRAMS("tp_btf/sys_exit", after_call, call_ends)

/* ---- tasks ---- */

static __always_inline void forked(u64 *ctx, bool is_again)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct task entry = {};
	u64 key = (u64)child;
	struct task *task = task_of((u64)parent);
	u64 leader = (u64)BPF_CORE_READ(child, group_leader);
	s64 flags = -1;

	if (!task && (!owner || !is_owner(parent)))
		return;
	if (is_again && task_of(key))
		return;
	if (task)
		inherit_errors(&entry, task);
	if (bpf_map_update_elem(&tasks, &key, &entry, BPF_ANY)) {
		count_loss(LOSS_TASKS_FULL);
		return;
	}
	if (task && (task->call == CALL_CLONE || task->call == CALL_CLONE3))
		flags = task->value;
	put_plain(task, (u64)parent, pid_of(parent), RECORD_FORK, (s64)key, pid_of(child), (s64)leader, flags);
}

PROGRAMS("tp_btf/sched_process_fork", at_fork, forked)

/* Text of a list between two addresses, in pieces; returns how much was sent. */
#define CHUNKS_AT_ONCE 16
#define MOST_TIMES 100 /* 6 MB are the most that the kernel takes */

/* At most a chunk of `n` bytes at an address. */
__attribute__((noinline)) int put_piece(u64 key, u32 pid, u32 is_env, u64 address, u64 n)
{
	return put_memory(key, pid, RECORD_ARGUMENTS, is_env, 0, address, n);
}

__attribute__((noinline)) int put_pieces(u64 key, u32 pid, u32 is_env, u64 begin, u64 end)
{
	int i;

	for (i = 0; i < CHUNKS_AT_ONCE; i++) {
		if (begin >= end)
			break;
		put_piece(key, pid, is_env, begin, end - begin);
		begin += RECORD_CHUNK;
	}
	return 0;
}

__attribute__((noinline)) int put_list(u64 key, u32 pid, u32 is_env, u64 begin, u64 end)
{
	int i;

	for (i = 0; i < MOST_TIMES; i++) {
		if (begin >= end)
			break;
		put_pieces(key, pid, is_env, begin, end);
		begin += CHUNKS_AT_ONCE * RECORD_CHUNK;
	}
	return 0;
}

static __always_inline u32 take_kernel_string(struct scratch *scratch, u32 number, u32 at, const char *from)
{
	long n = bpf_probe_read_kernel_str(scratch->text + place(at), RECORD_TEXT_MAX, from);

	return take_text(scratch, number, at, n > 0 ? (int)(n - 1) : -1);
}

#define DUMPABLE 3
#define DUMPABLE_BY_USER 1

/* Whether a user may not watch what the running task has become: as ptrace would, by its rights and its file. */
static __always_inline bool is_private(struct task_struct *current)
{
	const struct cred *cred = BPF_CORE_READ(current, cred);
	struct mm_struct *mm = BPF_CORE_READ(current, mm);
	unsigned long flags = DUMPABLE_BY_USER;
	u64 capabilities = 0;

	if (BPF_CORE_READ(cred, uid.val) != owner_uid || BPF_CORE_READ(cred, euid.val) != owner_uid ||
	    BPF_CORE_READ(cred, suid.val) != owner_uid ||
	    BPF_CORE_READ(cred, gid.val) != BPF_CORE_READ(cred, egid.val))
		return true;
	bpf_probe_read_kernel(&capabilities, sizeof(capabilities),
			      (void *)cred + bpf_core_field_offset(struct cred, cap_permitted));
	if (bpf_core_field_exists(struct mm_struct___since_6_18, flags.__mm_flags))
		flags = BPF_CORE_READ((struct mm_struct___since_6_18 *)mm, flags.__mm_flags[0]);
	else if (bpf_core_field_exists(struct mm_struct___before_6_18, flags))
		flags = BPF_CORE_READ((struct mm_struct___before_6_18 *)mm, flags);
	return capabilities || (flags & DUMPABLE) != DUMPABLE_BY_USER;
}

#define BUILDER_WORDS (ETRACE_BUILDER_MAX / sizeof(u64))

/* Whether a name that the kernel has is that of make or ninja. On its own for the verifier, as few paths. */
__noinline int is_builder(u64 from)
{
	u64 name[BUILDER_WORDS] = {};
	u32 i, k;

	if (bpf_probe_read_kernel_str(name, sizeof(name), (const void *)from) < 0)
		return 0;
	for (i = 0; i < ETRACE_N_BUILDERS; i++) {
		const u64 *known = (const u64 *)etrace_builders[i];
		u64 difference = 0;

		for (k = 0; k < BUILDER_WORDS; k++)
			difference |= name[k] ^ known[k];
		if (!difference)
			return 1;
	}
	return 0;
}

/*
 * Whether the environment is sent: always of make and ninja, by the name that was executed or that of
 * the file. Who receives it knows the path, and drops that of a script with such a name.
 */
static __always_inline bool is_environment_wanted(const struct task_struct *current, struct linux_binprm *program)
{
	return wants_environment || is_builder((u64)&current->comm) ||
	       is_builder((u64)BPF_CORE_READ(program, file, f_path.dentry, d_name.name));
}

static __always_inline void executed(u64 *ctx, bool is_again)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct linux_binprm *program = (struct linux_binprm *)ctx[2];
	u64 key = (u64)current;
	struct task *task = task_of(key);
	struct mm_struct *mm;
	struct scratch *scratch;
	u64 begin, end, env_begin, env_end;
	bool has_environment;
	u32 pid;
	u32 at;

	if (!task || was_seen(task, SEEN_EXEC, is_again))
		return;
	task->old_errors = task->errors;
	task->old_high_errors = (1U << N_HIGH_ERRORS) - 1;
	pid = pid_of(current);
	if (is_limited && is_private(current)) {
		put_plain(task, key, pid, RECORD_PRIVATE, 0, 0, 0, 0);
		bpf_map_delete_elem(&tasks, &key);
		return;
	}
	if (wants_usage)
		put_usage(key, pid, 1);
	put_rights(key, pid);
	scratch = record_begin(key, pid, RECORD_EXEC);
	if (!scratch)
		return;
	scratch->head.flags |= foreign_flag();
	mm = BPF_CORE_READ(current, mm);
	begin = BPF_CORE_READ(mm, arg_start);
	end = BPF_CORE_READ(mm, arg_end);
	env_begin = BPF_CORE_READ(mm, env_start);
	env_end = BPF_CORE_READ(mm, env_end);
	scratch->head.values[0] = (s64)(end - begin);
	has_environment = is_environment_wanted(current, program);
	scratch->head.values[1] = has_environment ? (s64)(env_end - env_begin) : 0;
	scratch->head.values[2] = is_compat();
	at = take_kernel_string(scratch, 0, 0, BPF_CORE_READ(program, filename));
	at = take_kernel_string(scratch, 1, at, BPF_CORE_READ(program, interp));
	at = take_path(scratch, 2, at, put_file((u64)BPF_CORE_READ(program, file), at));
	at = take_path(scratch, 3, at, put_directory(AT_FDCWD, at));
	at = take_kernel_string(scratch, 4, at, (const char *)&current->comm);
	record_put(task, scratch, at, BPF_RB_FORCE_WAKEUP);
	put_list(key, pid, 0, begin, end);
	if (has_environment)
		put_list(key, pid, 1, env_begin, env_end);
}

PROGRAMS("tp_btf/sched_process_exec", at_exec, executed)

/* Whether its process ends with the first thread of it. */
static __always_inline bool is_last(struct task_struct *task)
{
	struct signal_struct *process = BPF_CORE_READ(task, signal);

	return BPF_CORE_READ(task, group_leader) == task &&
	       (!BPF_CORE_READ(process, live.counter) || BPF_CORE_READ(process, flags) & SIGNAL_GROUP_EXIT);
}

static __always_inline void exited(u64 *ctx, bool is_again)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	u64 key = (u64)current;
	struct task *task = task_of(key);
	u32 pid;

	if (adopts && !cgroup && owner && BPF_CORE_READ(current, group_leader) == current && is_owner(current))
		owner = 0; /* another process may get its number */
	if (!task)
		return;
	pid = pid_of(current);
	if (wants_usage && is_last(current)) {
		u64 pages = memory_pages(current);

		if (pages > task->max_pages)
			task->max_pages = pages;
		put_usage(key, pid, 0);
	}
	put_plain(task, key, pid, RECORD_EXIT, BPF_CORE_READ(current, exit_code), 0, 0,
		  0);
	bpf_map_delete_elem(&tasks, &key);
}

PROGRAMS("tp_btf/sched_process_exit", at_exit, exited)

static __always_inline void renamed(u64 *ctx, bool is_again)
{
	u64 key = ctx[0];
	struct task *task = task_of(key);
	struct scratch *scratch;
	u32 at;

	if (!task || was_seen(task, SEEN_NAME, is_again) || task->call == CALL_EXECVE || task->call == CALL_EXECVEAT)
		return;
	scratch = record_begin(key, pid_of((struct task_struct *)key), RECORD_COMM);
	if (!scratch)
		return;
	at = take_kernel_string(scratch, 0, 0, (const char *)ctx[1]);
	record_put(task, scratch, at, wake_flags());
}

PROGRAMS("tp_btf/task_rename", at_rename, renamed)

SEC("tp_btf/sched_switch")
int at_switch(u64 *ctx)
{
	struct task_struct *next = (struct task_struct *)ctx[2];
	struct task *task = task_of((u64)next);

	if (!task)
		return 0;
	task->run_before = BPF_CORE_READ(next, se.sum_exec_runtime);
	task->on_since = bpf_ktime_get_ns();
	return 0;
}
