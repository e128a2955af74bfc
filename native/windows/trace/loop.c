// SPDX-License-Identifier: Apache-2.0
/*
 * The debug events of the build. Every exception is handed back to the program as if nobody
 * debugged it, but for the breakpoints by which the loader of each process greets its debugger.
 * Source: "Debugging Events", learn.microsoft.com.
 */
#include "trace/loop.h"

#include "trace/report.h"

#define POLL_MS 200
#define NO_WAIT_NS 1000000000ull
#define TELL_AFTER_NS 5000000000ull
#define STATUS_WX86_BREAKPOINT 0x4000001Fu

static void on_create(struct loop *loop, const DEBUG_EVENT *event)
{
	const CREATE_PROCESS_DEBUG_INFO *info = &event->u.CreateProcessInfo;
	uint64_t time_ns = now_ns();
	struct process *process = processes_add(loop->processes, event->dwProcessId);
	struct buffer image = parameters_image(info->hProcess, info->hFile);
	struct parameters parameters;

	watch_traced(loop->watch, event->dwProcessId);
	if (!parameters_read(&parameters, info->hProcess,
			     loop->recorder->options->has_environment)) {
		say("%.*s (process %lu): its command line cannot be read", (int)image.len, image.data,
		    event->dwProcessId);
	}
	recorder_exec(loop->recorder, process, time_ns, buffer_text(&image), &parameters);
	parameters_free(&parameters);
	buffer_free(&image);
	if (info->hFile)
		CloseHandle(info->hFile);
}

static void on_exit(struct loop *loop, const DEBUG_EVENT *event)
{
	struct process *process = processes_find(loop->processes, event->dwProcessId);
	uint64_t time_ns = now_ns();

	if (process && process->is_alive) {
		processes_end(loop->processes, process);
		recorder_exit(loop->recorder, process, time_ns, event->u.ExitProcess.dwExitCode);
	}
	if (event->dwProcessId == loop->root && !loop->has_root_ended) {
		loop->has_root_ended = true;
		loop->status = event->u.ExitProcess.dwExitCode;
		loop->root_end_ns = time_ns;
	}
}

static DWORD on_exception(struct loop *loop, const DEBUG_EVENT *event)
{
	struct process *process = processes_find(loop->processes, event->dwProcessId);
	DWORD code = event->u.Exception.ExceptionRecord.ExceptionCode;
	bool is_first = false;

	if (process && code == (DWORD)EXCEPTION_BREAKPOINT) {
		is_first = !process->has_broken;
		process->has_broken = true;
	} else if (process && code == STATUS_WX86_BREAKPOINT) {
		is_first = !process->has_broken32;
		process->has_broken32 = true;
	}
	return is_first ? (DWORD)DBG_CONTINUE : (DWORD)DBG_EXCEPTION_NOT_HANDLED;
}

static DWORD take(struct loop *loop, const DEBUG_EVENT *event)
{
	switch (event->dwDebugEventCode) {
	case CREATE_PROCESS_DEBUG_EVENT:
		on_create(loop, event);
		break;
	case EXIT_PROCESS_DEBUG_EVENT:
		on_exit(loop, event);
		break;
	case EXCEPTION_DEBUG_EVENT:
		return on_exception(loop, event);
	case LOAD_DLL_DEBUG_EVENT:
		if (event->u.LoadDll.hFile)
			CloseHandle(event->u.LoadDll.hFile);
		break;
	}
	return DBG_CONTINUE;
}

static void report_waiting(const struct process *process)
{
	say("waiting for %.*s (process %lu), which outlives the command; --no-wait leaves it",
	    (int)process->name.len, process->name.data, process->pid);
}

static void leave(const struct process *process)
{
	say("%.*s (process %lu) outlives the command; what it starts from now on is not recorded",
	    (int)process->name.len, process->name.data, process->pid);
	DebugActiveProcessStop(process->pid);
}

/* Whether the processes that outlive the command may go on. */
static bool is_over(struct loop *loop)
{
	uint64_t since_ns;

	if (!loop->processes->n_alive)
		return true;
	if (!loop->has_root_ended)
		return false;
	since_ns = now_ns() - loop->root_end_ns;
	if (loop->recorder->options->no_wait && since_ns >= NO_WAIT_NS) {
		processes_each_alive(loop->processes, leave);
		return true;
	}
	if (!loop->has_said_waiting && since_ns >= TELL_AFTER_NS) {
		loop->has_said_waiting = true;
		processes_each_alive(loop->processes, report_waiting);
	}
	return false;
}

void loop_run(struct loop *loop)
{
	DEBUG_EVENT event;

	do {
		if (!WaitForDebugEvent(&event, POLL_MS)) {
			if (GetLastError() != ERROR_SEM_TIMEOUT)
				die("no more debug events: %s", error_text(GetLastError()));
			continue;
		}
		ContinueDebugEvent(event.dwProcessId, event.dwThreadId, take(loop, &event));
	} while (!is_over(loop));
}
