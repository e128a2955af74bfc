// SPDX-License-Identifier: Apache-2.0
/* A job object that has every process of the build. Source: "Job Objects", learn.microsoft.com. */
#include "trace/watch.h"

#include <stdint.h>
#include <stdlib.h>
#include <winternl.h>

#include "trace/record.h"
#include "trace/report.h"

#define RETRY_MS 2 /* a new process may not have its parameters yet */
#define N_EMPTY 500 /* CreateProcess() leaves no command line empty; then it is so */
#define KEY_END 1
#define RIGHTS (PROCESS_QUERY_INFORMATION | PROCESS_VM_READ | SYNCHRONIZE)

/* Of ntdll; GetVersionEx() returns what a manifest says. */
NTSTATUS NTAPI RtlGetVersion(OSVERSIONINFOW *version);

static void read_one(struct watch *watch, struct watched *watched)
{
	if (!watched->process || watched->is_read)
		return;
	if (!watched->image.len)
		watched->image = parameters_image(watched->process, NULL);
	watched->is_read = parameters_read(&watched->parameters, watched->process,
					   watch->wants_environment) &&
			   (watched->parameters.command_line.len ||
			    (watched->parameters.has_loader && ++watched->n_empty > N_EMPTY));
	if (!watched->is_read)
		parameters_free(&watched->parameters);
}

/* The two messages of one process come in any order, and ids are used again: the oldest open one. */
static struct watched *find(struct watch *watch, unsigned long pid, bool is_reported)
{
	for (struct watched *w = watch->first; w; w = w->next) {
		bool has_place = is_reported ? !w->time_ns : !w->is_traced;

		if (w->pid == pid && has_place)
			return w;
	}
	return NULL;
}

static struct watched *find_or_add(struct watch *watch, unsigned long pid, bool is_reported)
{
	struct watched *watched = find(watch, pid, is_reported);

	if (watched)
		return watched;
	watched = must_realloc(NULL, sizeof(*watched));
	*watched = (struct watched){ .pid = pid };
	*watch->end = watched;
	watch->end = &watched->next;
	return watched;
}

/* Drop what both messages have reported. */
static void sweep(struct watch *watch)
{
	struct watched **at = &watch->first;

	while (*at) {
		struct watched *w = *at;

		if (!w->is_traced || !w->time_ns) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		if (w->process)
			CloseHandle(w->process);
		buffer_free(&w->image);
		parameters_free(&w->parameters);
		free(w);
	}
	watch->end = at;
}

static void reported(struct watch *watch, unsigned long pid)
{
	struct watched *watched = find_or_add(watch, pid, true);

	watched->time_ns = now_ns();
	if (!watched->is_traced) {
		watched->process = OpenProcess(RIGHTS, FALSE, pid);
		read_one(watch, watched);
	}
	sweep(watch);
}

void watch_traced(struct watch *watch, unsigned long pid)
{
	if (!watch->thread)
		return;
	EnterCriticalSection(&watch->lock);
	find_or_add(watch, pid, false)->is_traced = true;
	sweep(watch);
	LeaveCriticalSection(&watch->lock);
}

/*
 * Wine signals a process also before it has its first thread, and it has no exit code then. One that
 * ends with the number STILL_ACTIVE is looked at until the build has ended.
 */
static bool has_ended(HANDLE process)
{
	DWORD status;

	return !WaitForSingleObject(process, 0) && GetExitCodeProcess(process, &status) &&
	       status != STILL_ACTIVE;
}

static bool retry(struct watch *watch)
{
	bool has_unread = false;

	for (struct watched *w = watch->first; w; w = w->next) {
		if (w->is_traced || !w->process || w->is_read)
			continue;
		read_one(watch, w);
		has_unread = has_unread || (!w->is_read && !has_ended(w->process));
	}
	return has_unread;
}

static DWORD WINAPI run(void *context)
{
	struct watch *watch = context;
	DWORD timeout = INFINITE;

	for (;;) {
		DWORD message = 0;
		ULONG_PTR key = 0;
		OVERLAPPED *detail = NULL;
		BOOL is_reported = GetQueuedCompletionStatus(watch->port, &message, &key, &detail, timeout);

		if (is_reported && key == KEY_END)
			return 0;
		EnterCriticalSection(&watch->lock);
		if (is_reported && message == JOB_OBJECT_MSG_NEW_PROCESS)
			reported(watch, (unsigned long)(ULONG_PTR)detail);
		timeout = retry(watch) ? RETRY_MS : INFINITE;
		LeaveCriticalSection(&watch->lock);
	}
}

/* Before Windows 8 a program in a job cannot be put into another one, as many builds do. */
static bool can_nest_jobs(void)
{
	OSVERSIONINFOW version = { .dwOSVersionInfoSize = sizeof(version) };

	RtlGetVersion(&version);
	if (version.dwMajorVersion > 6 || (version.dwMajorVersion == 6 && version.dwMinorVersion >= 2))
		return true;
	SetLastError(ERROR_OLD_WIN_VERSION);
	return false;
}

static bool make_job(struct watch *watch)
{
	JOBOBJECT_ASSOCIATE_COMPLETION_PORT port = { NULL, NULL };
	/* a program that asks to leave the job may, as if there were none */
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
		.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_BREAKAWAY_OK,
	};

	watch->job = CreateJobObjectW(NULL, NULL);
	watch->port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
	port.CompletionPort = watch->port;
	return watch->job && watch->port &&
	       SetInformationJobObject(watch->job, JobObjectAssociateCompletionPortInformation,
				       &port, sizeof(port)) &&
	       SetInformationJobObject(watch->job, JobObjectExtendedLimitInformation, &limits,
				       sizeof(limits));
}

bool watch_begin(struct watch *watch, HANDLE process, bool wants_environment)
{
	*watch = (struct watch){ .wants_environment = wants_environment };
	watch->end = &watch->first;
	InitializeCriticalSection(&watch->lock);
	if (!can_nest_jobs() || !make_job(watch) || !AssignProcessToJobObject(watch->job, process))
		return false;
	watch->thread = CreateThread(NULL, 0, run, watch, 0, NULL);
	return watch->thread;
}

void watch_end(struct watch *watch, watch_call *call, void *context)
{
	if (!watch->thread)
		return;
	PostQueuedCompletionStatus(watch->port, 0, KEY_END, NULL);
	WaitForSingleObject(watch->thread, INFINITE);
	for (struct watched *w = watch->first; w; w = w->next) {
		if (!w->is_traced && w->time_ns)
			call(context, w);
	}
}
