// SPDX-License-Identifier: Apache-2.0
/*
 * The stops of the traced tasks, one after the other: the meaning of each, and how the task
 * continues.
 *
 * A task goes on with PTRACE_CONT, or with PTRACE_SYSCALL while the exit of a call must be seen. A
 * group stop (SIGSTOP, SIGTSTP, ...) goes on with PTRACE_LISTEN, so that the task stays stopped as
 * far as anybody can see. Any request may find that the task was killed meanwhile (ESRCH): its end
 * is reported by a later wait and nothing need be done. See ptrace(2).
 *
 * The first stop of a child can come before its parent's fork event. It is parked then: only the
 * parent's event says who the child is.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/options.h"
#include "capture/proc.h"
#include "capture/signals.h"
#include "capture/trace.h"
#include "event/event.h"
#include "session/session.h"
#include "task/lookup.h"
#include "task/task.h"

#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define TICK_US 250000
#define ORPHAN_NS 100000000u /* a parent's event follows its child's first stop at once */
#define GRACE_NS 1000000000u /* for what ends a moment after the command, such as `tee` */

enum { KILL_ASKED = 1, KILLING };

static volatile sig_atomic_t ticked;
static volatile sig_atomic_t stop_asked; /* from the terminal, to the whole job */
static volatile sig_atomic_t kill_asked;
static volatile sig_atomic_t front_gone;

static pid_t front_pid;
static bool orphans_asked;
static pid_t root_pid;
static bool root_stopped;
static bool root_ended;
static int root_status;
static u64 root_end_time;

static void on_signal(int signal)
{
	if (signal == SIGALRM)
		ticked = 1;
	else
		stop_asked = 1;
}

/* SIGUSR2: the front has died (PR_SET_PDEATHSIG). */
static void on_front_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_pid != front_pid) /* the build signals its whole process group */
		return;
	if (signal == SIGUSR1)
		kill_asked = KILL_ASKED;
	else
		front_gone = 1;
}

void loop_init(void)
{
	static const int noted[] = { SIGTSTP, SIGTTIN, SIGTTOU, SIGALRM };
	struct itimerval tick = { { 0, TICK_US }, { 0, TICK_US } };
	size_t i;

	front_pid = getppid();
	signals_ignore_all();
	for (i = 0; i < sizeof(noted) / sizeof(noted[0]); i++)
		signals_set(noted[i], on_signal);
	signals_set_info(SIGUSR1, on_front_signal);
	signals_set_info(SIGUSR2, on_front_signal);
	signals_set_child_default();
	setitimer(ITIMER_REAL, &tick, NULL);
}

int loop_root_status(void)
{
	return root_status;
}

bool loop_was_killed(void)
{
	return kill_asked;
}

/* A stop was handled, or `again` will handle it when names have been looked up. */
static void go_on(struct task *task, void (*again)(struct task *task))
{
	if (lookup_is_pending(task)) {
		task->again = again;
		return;
	}
	lookup_forget(task);
	core_resume(task, 0);
}

static bool is_stop_signal(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* PTRACE_EVENT_STOP: a group stop, or the first stop of a child, or the end of a group stop. */
static void go_on_from_event_stop(const struct task *task, int signal)
{
	bool group_stop = is_stop_signal(signal);

	if (group_stop)
		ptrace(PTRACE_LISTEN, task->tid, 0, 0);
	else
		core_resume(task, 0);
	if (task->tid == root_pid)
		root_stopped = group_stop;
}

static void drop_task(struct task *task)
{
	lookup_forget(task);
	task_remove(task);
}

static void end_task(struct task *task, int wait_status)
{
	process_put_exit(task, wait_status);
	drop_task(task);
}

static u64 event_message(const struct task *task)
{
	unsigned long message = 0;

	ptrace(PTRACE_GETEVENTMSG, task->tid, 0, &message);
	return message;
}

/* The parent's event made the child known; it continues where it waited. */
static void begin_child(struct task *parent, struct task *child, u64 clone_flags)
{
	enum task_state state = child->state;

	task_begin(child, parent, clone_flags);
	core_unbind_child(parent, child);
	process_put_fork(parent, child);
	task_set_state(child, TASK_RUNNING);
	if (state != TASK_EXPECTED)
		process_restore_argument(child);
	if (state == TASK_PARKED)
		go_on_from_event_stop(child, WSTOPSIG(child->wait_status));
	else if (state == TASK_ENDED_EARLY)
		end_task(child, child->wait_status);
	else
		task_set_state(child, TASK_EXPECTED);
}

static bool is_waiting(const struct task *task)
{
	return task->state == TASK_PARKED || task->state == TASK_ENDED_EARLY;
}

static void on_fork(struct task *parent, int event)
{
	pid_t tid = (pid_t)event_message(parent);
	struct task *child = tid ? task_find(tid) : NULL;

	if (!tid)
		return;
	if (child && !is_waiting(child)) {
		drop_task(child); /* its number is in use again: its end went by unseen */
		child = NULL;
	}
	if (!child) {
		child = task_create(tid);
		task_set_state(child, TASK_EXPECTED);
	}
	begin_child(parent, child, process_clone_flags(parent, tid, event));
	core_resume(parent, 0);
}

/*
 * A thread that is not the leader and executes becomes the leader: it takes over the leader's tid,
 * and the leader ends without a report of its own.
 */
static struct task *take_over_leader(struct task *leader)
{
	pid_t former = task_thread_count() ? (pid_t)event_message(leader) : leader->tid;
	struct task *thread = task_find(former);

	if (former == leader->tid || !thread)
		return leader;
	usage_move(leader, thread);
	task_renumber(thread, leader->tid);
	end_task(leader, 0);
	return thread;
}

static void put_exec(struct task *task)
{
	if (trace_is_open())
		exec_put(task);
	go_on(task, put_exec);
}

static void on_exec(struct task *task)
{
	task = take_over_leader(task);
	process_settle_clone(task);
	if (trace_is_open() && !counters.executions) {
		capture_publish();
		process_list_descriptors(task);
	}
	put_exec(task);
}

static bool syscall_info(const struct task *task, struct __ptrace_syscall_info *info)
{
	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(*info), info) > 0)
		return true;
	if (errno == EIO)
		denied_explain("PTRACE_GET_SYSCALL_INFO", errno);
	return false;
}

static bool is_followed(enum call call)
{
	return trace_is_open() || call == CALL_CLONE || call == CALL_CLONE3 || call == CALL_AFFINITY;
}

static void on_entry(struct task *task, enum call call, const uint64_t *args)
{
	if (is_followed(call))
		syscall_enter(task, call, args);
}

static void on_seccomp(struct task *task)
{
	struct __ptrace_syscall_info info;

	process_settle_clone(task);
	if (!syscall_info(task, &info))
		return;
	if (info.op == PTRACE_SYSCALL_INFO_SECCOMP && !task->is_entered)
		on_entry(task, (enum call)info.seccomp.ret_data, info.seccomp.args);
	if (!lookup_is_pending(task))
		task->is_entered = false; /* its exit may go by unseen */
	go_on(task, on_seccomp);
}

/* The entry of any call of a watched task, or the exit of the call that a task is in. */
static void on_syscall(struct task *task)
{
	struct __ptrace_syscall_info info;

	if (!syscall_info(task, &info))
		return;
	task->is_entered = info.op == PTRACE_SYSCALL_INFO_ENTRY;
	if (task->is_entered) {
		process_settle_clone(task);
		on_entry(task,
			 filter_classify(info.arch, info.entry.nr, info.entry.args,
					 task_sees_writes(task)),
			 info.entry.args);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && task->call) {
		syscall_exit(task, info.exit.rval);
	}
	go_on(task, on_syscall);
}

static void on_stop(struct task *task, int status)
{
	int signal = WSTOPSIG(status);

	switch (status >> 16) {
	case PTRACE_EVENT_SECCOMP:
		on_seccomp(task);
		break;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		on_fork(task, status >> 16);
		break;
	case PTRACE_EVENT_EXEC:
		on_exec(task);
		break;
	case PTRACE_EVENT_EXIT:
		if (trace_is_open())
			usage_take(task);
		core_resume(task, 0);
		break;
	case PTRACE_EVENT_STOP:
		process_settle_clone(task);
		go_on_from_event_stop(task, signal);
		break;
	default:
		if (signal == SYSCALL_STOP) {
			on_syscall(task);
		} else {
			process_settle_clone(task);
			core_resume(task, signal);
		}
	}
}

/*
 * A task whose parent was killed before its event has nothing to wait for. It continues with an
 * unknown origin. Usually its parent is then not traced; a task that a traced subreaper took over
 * has waited long while there was nothing else to do.
 */
static void begin_orphan(struct task *task)
{
	bool ended = task->state == TASK_ENDED_EARLY;

	counters.orphans++;
	task_set_state(task, TASK_RUNNING);
	task_begin(task, NULL, 0);
	if (ended) {
		end_task(task, task->wait_status);
		return;
	}
	process_list_descriptors(task);
	go_on_from_event_stop(task, WSTOPSIG(task->wait_status));
}

static void adopt(struct task *task, void *context)
{
	(void)context;
	if (task->state == TASK_PARKED && !task_find(proc_parent(task->tid)))
		begin_orphan(task);
}

static void adopt_late(struct task *task, void *context)
{
	const u64 *now = context;

	if (is_waiting(task) && *now - task->waits_since > ORPHAN_NS)
		begin_orphan(task);
}

/* Called when no report of any task is left. */
static void look_for_orphans(void)
{
	u64 now = monotonic_ns();

	orphans_asked = false;
	task_for_each(adopt_late, &now);
}

static void on_end(struct task *task, int status)
{
	if (task->tid == root_pid && !root_ended) {
		root_ended = true;
		root_status = status;
		root_end_time = monotonic_ns();
		front_set_root(0);
	}
	end_task(task, status);
	if (task_parked_count())
		task_for_each(adopt, NULL);
}

static void wait_for_parent(struct task *task, int status)
{
	task->wait_status = status;
	task->waits_since = monotonic_ns();
	task_set_state(task, WIFSTOPPED(status) ? TASK_PARKED : TASK_ENDED_EARLY);
}

static void on_report(pid_t tid, int status)
{
	struct task *task = task_find(tid);

	counters.stops++;
	if (!task) {
		wait_for_parent(task_create(tid), status);
		return;
	}
	if (is_waiting(task)) { /* killed; or its number is in use again */
		wait_for_parent(task, status);
		return;
	}
	if (task->state == TASK_EXPECTED) {
		task_set_state(task, TASK_RUNNING);
		process_restore_argument(task);
	}
	task->n_stops += WIFSTOPPED(status);
	if (WIFSTOPPED(status))
		on_stop(task, status);
	else
		on_end(task, status);
}

/* The stops of tasks that waited for the look-up of a name. */
static void handle_answers(void)
{
	struct task *task;

	while ((task = lookup_next_answered()))
		task->again(task);
}

static void kill_task(struct task *task, void *context)
{
	(void)context;
	kill(task->tgid, SIGKILL);
}

static void on_tick(void)
{
	ticked = 0;
	orphans_asked = task_parked_count() > 0;
	trace_flush();
	capture_report_status(task_count());
	if (kill_asked) { /* and again by the next tick, for those that were born since */
		kill_asked = KILLING;
		task_for_each(kill_task, NULL);
	}
}

/*
 * The job was stopped from the terminal and the command is stopped: stop as well, so that the shell
 * sees the job stopped. Only after all other stops have been dealt with: a task that waits for the
 * tracer is not stopped yet.
 */
static void stop_with_command(void)
{
	stop_asked = 0;
	trace_flush();
	raise(SIGSTOP);
}

static bool is_past_grace(void)
{
	return root_ended && trace_is_open() && !options.wait_all &&
	       monotonic_ns() - root_end_time > GRACE_NS;
}

enum loop_end loop_run(pid_t root)
{
	root_pid = root;
	while (task_count()) {
		bool may_stop = stop_asked && root_stopped;
		int status;
		bool idle_matters = may_stop || orphans_asked;
		pid_t tid = waitpid(-1, &status, __WALL | (idle_matters ? WNOHANG : 0));

		if (tid > 0)
			on_report(tid, status);
		else if (tid == 0 && may_stop)
			stop_with_command();
		else if (tid == 0)
			look_for_orphans();
		else if (errno != EINTR)
			break;
		handle_answers();
		if (ticked || kill_asked == KILL_ASKED)
			on_tick();
		if (front_gone)
			return LOOP_FRONT_GONE;
		if (is_past_grace())
			return LOOP_SURVIVORS;
	}
	return LOOP_ALL_ENDED;
}
