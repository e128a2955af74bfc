// SPDX-License-Identifier: GPL-2.0-only
/*
 * The raw tracepoint sys_exit: from a call that has returned to the handler of its kind. Context:
 * the task, atomic (preemption is off before Linux 6.13). Every system call of every task comes
 * here: the order of the tests is that of their costs, and nothing comes before them.
 */
#include "event/call.h"
#include "event/handlers.h"
#include "probe/hooks.h"

static void count_io_uring(struct etrace_task *entry, const struct etrace_call *call)
{
	if (call->result >= 0)
		etrace_count(ETRACE_COUNT_IO_URING);
}

static const struct etrace_handler io_uring = { .exit = count_io_uring };

static void count_passed(struct etrace_task *entry, const struct etrace_call *call)
{
	if (call->result >= 0)
		etrace_count(ETRACE_COUNT_PASSED_FDS);
}

static const struct etrace_handler passed = { .exit = count_passed };

static void count_mount(struct etrace_task *entry, const struct etrace_call *call)
{
	if (call->result >= 0)
		etrace_count(ETRACE_COUNT_NEW_MOUNT_API);
}

static const struct etrace_handler new_mount = { .exit = count_mount };

#define ETRACE_CALL_HANDLERS
#include "event/calls.h"

/* syscall_get_arguments() copies all six, to a stack that must be guarded then. */
static __always_inline int first_argument(const struct pt_regs *regs)
{
#if defined(CONFIG_X86_64)
	return (int)(unlikely(etrace_in_compat_call()) ? regs->bx : regs->di);
#elif defined(CONFIG_ARM64)
	return (int)regs->orig_x0;
#else
#error "etrace does not know where this architecture keeps the first argument: add it here"
#endif
}

/*
 * The call is an execution that has succeeded. Its number may be another call's in the table of the
 * new program: arm64 keeps it when 64-bit programs execute 32-bit ones.
 */
static bool is_executing(const struct etrace_task *entry)
{
	return unlikely(entry->exec.file);
}

/*
 * The entry of the task that runs. Nobody frees it before that task's own exit, or while a probe of
 * it runs: RCU is wanted for the others that the hash leads past.
 */
static __always_inline struct etrace_task *find_current(void)
{
	struct etrace_task *entry;

	preempt_disable_notrace();
	entry = etrace_task_find(current);
	preempt_enable_notrace();
	return entry;
}

/* A separate function: its stack needs a guard, which untraced tasks must not pay for. */
static noinline void exit_call(struct etrace_task *entry, struct pt_regs *regs, long result,
			       enum etrace_call_kind kind)
{
	struct etrace_call call ETRACE_UNINITIALIZED;

	etrace_read_arguments(regs, call.args);
	call.result = result;
	call.kind = kind;
	if (kind == ETRACE_CALL_OPENAT) /* the most frequent one: an indirect call is dear */
		etrace_exit_open(entry, &call);
	else
		handlers[kind]->exit(entry, &call);
}

/* What looks like a call of interest, of any task. */
static noinline __noclone void look_closer(void *data, struct pt_regs *regs, long result)
{
	enum etrace_call_kind kind;
	struct etrace_task *entry;

	if (likely(!etrace_task_may_be_traced(current)))
		return;
	entry = find_current();
	if (!entry || is_executing(entry))
		return;
	kind = etrace_call_kind(regs);
	if (kind == ETRACE_CALL_CLOSE)
		etrace_exit_close(entry, first_argument(regs), result);
	else if (etrace_looked_at_exit(kind))
		exit_call(entry, regs, result, kind);
}

/*
 * Five instructions for all other calls: what is called has the same arguments, so that no register
 * moves, and ftrace has no place here.
 */
void notrace etrace_on_sys_exit(void *data, struct pt_regs *regs, long result)
{
	unsigned int nr = syscall_get_nr(current, regs);

	if (unlikely(etrace_exit_numbers[nr % ETRACE_EXIT_NUMBERS]))
		look_closer(data, regs, result);
}
