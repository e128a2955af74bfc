// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes: tracepoints, found by name because the kernel exports none of these, and kprobes on
 * functions that have no tracepoint. A kernel without one of the functions is traced without it,
 * and STATUS names it; one without the tracepoints is not traced. Context: process, START and STOP.
 */
#include <linux/kprobes.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>
#include <trace/events/syscalls.h>
#include <trace/events/task.h>

#include "event/handlers.h"
#include "event/names.h"
#include "lookup.h"
#include "probe/hooks.h"

/* ---- tracepoints ---- */

static const struct tracepoint_probe {
	const char *name;
	void *function;
	u32 option; /* that asks for it, or 0 */
} tracepoint_probes[] = {
	/* first what takes tasks out of the set, last what puts them in */
	{ "sched_process_exit", etrace_on_exit },
	{ "sched_process_exec", etrace_on_exec },
	{ "task_rename", etrace_on_rename, ETRACE_OPTION_THREAD_NAMES },
	{ "sys_exit", etrace_on_sys_exit },
	{ "sched_process_fork", etrace_on_fork },
};

static struct tracepoint *registered[ARRAY_SIZE(tracepoint_probes)];

/* The compiler compares our probes with the kernel's prototypes. */
static inline void check_prototypes(void)
{
	check_trace_callback_type_sys_exit(etrace_on_sys_exit);
	check_trace_callback_type_sched_process_fork(etrace_on_fork);
	check_trace_callback_type_sched_process_exec(etrace_on_exec);
	check_trace_callback_type_sched_process_exit(etrace_on_exit);
	check_trace_callback_type_task_rename(etrace_on_rename);
}

static int register_tracepoint(unsigned int i)
{
	const struct tracepoint_probe *probe = &tracepoint_probes[i];
	struct tracepoint *tracepoint = etrace_tracepoint_find(probe->name);
	int err;

	if (!tracepoint) {
		pr_err("etrace: this kernel has no tracepoint %s\n", probe->name);
		return -ENOENT;
	}
	err = tracepoint_probe_register(tracepoint, probe->function, NULL);
	if (err) {
		pr_err("etrace: tracepoint %s cannot be probed (%d)\n", probe->name, err);
		return err;
	}
	registered[i] = tracepoint;
	return 0;
}

static void unregister_tracepoints(void)
{
	unsigned int i = ARRAY_SIZE(tracepoint_probes);

	while (i--) {
		if (registered[i])
			tracepoint_probe_unregister(registered[i], tracepoint_probes[i].function,
						    NULL);
		registered[i] = NULL;
	}
	tracepoint_synchronize_unregister();
}

static int register_tracepoints(u32 options)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(tracepoint_probes); i++) {
		if (tracepoint_probes[i].option & ~options)
			continue;
		err = register_tracepoint(i);
		if (err) {
			unregister_tracepoints();
			return err;
		}
	}
	return 0;
}

/* ---- kprobes ---- */

static const struct kprobe_definition {
	const char *symbol;
	kprobe_pre_handler_t handler;
	u32 option;
	u32 hook; /* enum etrace_hook, whose names are kept; or 0 */
} kprobe_definitions[] = {
	{ "security_path_rename", etrace_on_path_rename, .hook = ETRACE_HOOK_RENAME },
	{ "security_path_link", etrace_on_path_link, .hook = ETRACE_HOOK_LINK },
	{ "security_path_symlink", etrace_on_path_symlink, .hook = ETRACE_HOOK_SYMLINK },
	{ "do_close_on_exec", etrace_on_close_on_exec },
#if defined(CONFIG_X86_64)
	{ "__x64_sys_close_range", etrace_on_close_range },
#ifdef CONFIG_IA32_EMULATION
	{ "__ia32_sys_close_range", etrace_on_close_range },
#endif
#elif defined(CONFIG_ARM64)
	{ "__arm64_sys_close_range", etrace_on_close_range },
#else
#error "etrace does not know what this architecture calls its close_range: add it here"
#endif
	{ "scm_detach_fds", etrace_on_detach_fds },
#if !ETRACE_EXIT_HAS_MEMORY
	{ "exit_signals", etrace_on_exit_signals, ETRACE_OPTION_USAGE },
#endif
	{ "security_sb_mount", etrace_on_sb_mount, ETRACE_OPTION_MOUNTS, ETRACE_HOOK_MOUNT },
	{ "security_sb_umount", etrace_on_sb_umount, ETRACE_OPTION_MOUNTS, ETRACE_HOOK_UMOUNT },
};

static struct kprobe kprobes[ARRAY_SIZE(kprobe_definitions)];
static struct kprobe *active[ARRAY_SIZE(kprobe_definitions)];
static unsigned int n_active;
static const char *missing[ARRAY_SIZE(kprobe_definitions) + 1]; /* and the function of usage.c */
static unsigned int n_missing;

/*
 * Without ftrace x86 has to trap at the function, and handlers run as in a non-maskable interrupt:
 * ours allocate memory and end files.
 */
static int register_one(struct kprobe *probe)
{
	int err = register_kprobe(probe);

	if (err || !IS_ENABLED(CONFIG_X86) || kprobe_ftrace(probe))
		return err;
	unregister_kprobe(probe);
	return -EOPNOTSUPP;
}

/*
 * Kprobes can be switched off as a whole, before a session or during it (debug/kprobes/enabled,
 * kernel.ftrace_enabled), without notice. One on a function of our own shows whether they fire.
 */
static bool switched_off;
static bool fired;

static int on_self_test(struct kprobe *probe, struct pt_regs *regs)
{
	WRITE_ONCE(fired, true);
	return 0;
}

static noinline void self_test(void)
{
	barrier(); /* or the compiler would leave the call out */
}

static struct kprobe self_probe;

static void register_self_test(void)
{
	self_probe = (struct kprobe){
		.addr = (kprobe_opcode_t *)self_test,
		.pre_handler = on_self_test,
	};
	switched_off = false;
	if (register_one(&self_probe)) {
		pr_warn("etrace: whether kprobes fire cannot be tested here\n");
		self_probe.addr = NULL;
	}
}

static void unregister_self_test(void)
{
	if (self_probe.addr)
		unregister_kprobe(&self_probe);
	self_probe.addr = NULL;
}

static bool kprobes_fire(void)
{
	if (!self_probe.addr)
		return true;
	WRITE_ONCE(fired, false);
	self_test();
	return READ_ONCE(fired);
}

/* All of them are missing then. At START and at STOP. */
static void check_kprobes(void)
{
	unsigned int i;

	if (switched_off || kprobes_fire())
		return;
	switched_off = true;
	WRITE_ONCE(etrace_firing_hooks, 0);
	pr_warn("etrace: kprobes are switched off (debug/kprobes/enabled, kernel.ftrace_enabled)\n");
	for (i = 0; i < n_active; i++)
		missing[n_missing++] = active[i]->symbol_name;
}

static void register_kprobe_of(unsigned int i)
{
	const struct kprobe_definition *definition = &kprobe_definitions[i];
	int err;

	kprobes[i] = (struct kprobe){
		.symbol_name = definition->symbol,
		.pre_handler = definition->handler,
	};
	err = register_one(&kprobes[i]);
	if (!err) {
		active[n_active++] = &kprobes[i];
		WRITE_ONCE(etrace_firing_hooks, etrace_firing_hooks | definition->hook);
		return;
	}
	pr_warn("etrace: %s cannot be probed (%d)\n", definition->symbol, err);
	missing[n_missing++] = definition->symbol;
}

/* On PREEMPT_RT d_path() takes locks that sleep: names are looked up when the call has ended. */
static bool is_wanted(const struct kprobe_definition *definition, u32 options)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && definition->hook)
		return false;
	return !(definition->option & ~options);
}

static void register_kprobes_for(u32 options)
{
	unsigned int i;

	n_active = 0;
	n_missing = 0;
	etrace_firing_hooks = 0;
	for (i = 0; i < ARRAY_SIZE(kprobe_definitions); i++)
		if (is_wanted(&kprobe_definitions[i], options))
			register_kprobe_of(i);
	if (options & ETRACE_OPTION_USAGE && !etrace_usage_has_cpu())
		missing[n_missing++] = "task_sched_runtime";
}

static void unregister_all_kprobes(void)
{
	unsigned long n_missed = 0;
	unsigned int i;

	unregister_self_test();
	unregister_kprobes(active, n_active);
	for (i = 0; i < n_active; i++)
		n_missed += active[i]->nmissed;
	n_active = 0;
	etrace_count_n(ETRACE_COUNT_MISSED_PROBES, n_missed);
}

const char *etrace_hooks_missing(unsigned int n)
{
	return n < n_missing ? missing[n] : NULL;
}

/* ---- both ---- */

int etrace_hooks_register(u32 options)
{
	int err;

	check_prototypes();
	etrace_opens_init();
	register_kprobes_for(options);
	register_self_test();
	check_kprobes();
	err = register_tracepoints(options);
	if (err)
		unregister_all_kprobes();
	return err;
}

/* The exit of tasks goes last: until then no other task has the address of one in the set. */
void etrace_hooks_unregister(void)
{
	check_kprobes();
	unregister_all_kprobes();
	unregister_tracepoints();
}
