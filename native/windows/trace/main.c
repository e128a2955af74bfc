// SPDX-License-Identifier: Apache-2.0
/*
 * windows-tracer: run a command as its debugger and record every program that it starts, in the
 * build spec of xcalbuild or in etrace's event lines. docs/capture-windows.md
 */
#include <stdlib.h>

#include "trace/loop.h"
#include "trace/report.h"

#define STATUS_NOT_STARTED 126
#define STATUS_NOT_FOUND 127
#define CLOSE_WAIT_MS 4500 /* Windows ends the tracer after five seconds */
/* Windows gives a debugged program a slow heap, unless this variable is there. */
#define FAST_HEAP L"_NO_DEBUG_HEAP"

static HANDLE ended; /* an event: the outputs are written */

/* Ctrl-C goes to every program of the console; the tracer stays until the build has ended of it. */
static BOOL WINAPI on_console(DWORD kind)
{
	if (kind == CTRL_CLOSE_EVENT || kind == CTRL_LOGOFF_EVENT || kind == CTRL_SHUTDOWN_EVENT)
		WaitForSingleObject(ended, CLOSE_WAIT_MS);
	return TRUE;
}

static void refuse_wrong_word_size(void)
{
	BOOL is_wow64 = FALSE;

	if (IsWow64Process(GetCurrentProcess(), &is_wow64) && is_wow64)
		die("this is the tracer for 32-bit Windows, which cannot see 64-bit programs; use "
		    "that of x86-64, which sees both");
}

static HANDLE inheritable(DWORD std_handle)
{
	HANDLE handle = GetStdHandle(std_handle);

	if (handle && handle != INVALID_HANDLE_VALUE)
		SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
	return handle;
}

static PROCESS_INFORMATION start(struct options *options, struct recorder *recorder)
{
	PROCESS_INFORMATION started;
	STARTUPINFOW info = {
		.cb = sizeof(info),
		.dwFlags = STARTF_USESTDHANDLES,
		.hStdInput = inheritable(STD_INPUT_HANDLE),
		.hStdOutput = inheritable(STD_OUTPUT_HANDLE),
		.hStdError = inheritable(STD_ERROR_HANDLE),
	};
	DWORD error;
	bool is_missing;

	if (CreateProcessW(NULL, options->command, NULL, NULL, TRUE,
			   DEBUG_PROCESS | CREATE_SUSPENDED, NULL, NULL, &info, &started))
		return started;
	error = GetLastError();
	is_missing = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
	recorder_drop(recorder);
	say("error: the command cannot be started: %s%s", error_text(error),
	    is_missing ? "; a command of cmd.exe or a script needs `cmd /c` before it" : "");
	ExitProcess(is_missing ? STATUS_NOT_FOUND : STATUS_NOT_STARTED);
}

/* A process that the build debugged itself: the job reported it. */
static void record_watched(void *context, struct watched *watched)
{
	struct recorder *recorder = context;
	struct process *process = processes_add(recorder->processes, watched->pid);
	DWORD code;

	if (!watched->is_read) {
		say("process %lu ended before its command line could be read; the build debugs it, "
		    "or it refuses to be debugged", watched->pid);
		if (!watched->image.len)
			return;
	} else {
		say("%.*s (process %lu) is debugged by the build: what it started is recorded, its "
		    "end is not exact", (int)watched->image.len, watched->image.data, watched->pid);
	}
	recorder_exec(recorder, process, watched->time_ns, buffer_text(&watched->image),
		      &watched->parameters);
	if (GetExitCodeProcess(watched->process, &code) && code != STILL_ACTIVE)
		recorder_exit(recorder, process, now_ns(), code);
}

static void report_empty(const struct recorder *recorder)
{
	if (recorder->options->output && !recorder->n_items)
		say("the build spec is empty: none of the %llu programs that ran is known (-p lists "
		    "the known ones, -c gives others, -d writes all)",
		    (unsigned long long)recorder->processes->n);
}

static DWORD run(struct options *options)
{
	static struct processes processes;
	struct recorder recorder;
	struct watch watch;
	PROCESS_INFORMATION started;
	struct loop loop = { .recorder = &recorder, .processes = &processes, .watch = &watch };

	recorder_begin(&recorder, options, &processes);
	started = start(options, &recorder);
	DebugSetProcessKillOnExit(FALSE);
	if (!watch_begin(&watch, started.hProcess, options->has_environment))
		say("no job object can be made (%s): programs that the build debugs itself will be "
		    "missing", error_text(GetLastError()));
	ResumeThread(started.hThread);
	CloseHandle(started.hThread);
	CloseHandle(started.hProcess);
	loop.root = started.dwProcessId;
	loop_run(&loop);
	watch_end(&watch, record_watched, &recorder);
	report_empty(&recorder);
	if (!recorder_finish(&recorder))
		loop.status = STATUS_ETRACE_FAILED;
	SetEvent(ended);
	processes_free(&processes);
	return loop.status;
}

int main(void)
{
	struct options options;

	options_read(&options);
	refuse_wrong_word_size();
	ended = CreateEventW(NULL, TRUE, FALSE, NULL);
	SetConsoleCtrlHandler(on_console, TRUE);
	if (!GetEnvironmentVariableW(FAST_HEAP, NULL, 0))
		SetEnvironmentVariableW(FAST_HEAP, L"1");
	ExitProcess(run(&options));
}
