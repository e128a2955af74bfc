// SPDX-License-Identifier: Apache-2.0
/*
 * A program that reports what it was started with and then does what its first argument names. It
 * appends {"directory": .., "arguments": [..]} to the file that ACTOR_LOG names: the line that the
 * tracer must have of it. Arguments are those of Microsoft's C library.
 *
 * With ACTOR_STATUS it ends with that status instead.
 *
 *   exit N          end with N
 *   run WORD...     start the command line made of the words, wait, end with its status
 *   line FILE       the same with the command line that the file has, in UTF-8
 *   lone            start `exit 0` with an argument that is no Unicode
 *   in DIR WORD...  the same in another directory
 *   as NAME WORD... the same with another argument 0
 *   tree DEPTH N    start N of itself, each with DEPTH - 1, one after the other
 *   many N          start `exit 0` N times, eight at a time
 *   kill            start `sleep EVENT`, when it runs end it with status 9, end with its status
 *   stay            start `sleep EVENT`, and end when it runs
 *   leave           start `after`, and end without waiting for it
 *   after HANDLE    wait for the process, then start `exit 0`
 *   job, breakaway  start `exit 4` in a job of its own, or outside of it
 *   debug WORD...   start the command as its debugger
 *   debugged        end with 1 when a debugger is there
 *   crash           read from address 0
 *   trap            a breakpoint that the program handles itself: end with 6
 *   raise CODE      an exception (hexadecimal) that it handles itself: end with 6
 *   killer          end the process that started this one
 *   write FILE      make the file with the standard input's bytes, end with 0
 *   erase FILE      remove it
 *   control         send Ctrl-C to the whole console, end with 8 when it came
 *   hold FILE WORD.. keep the file open, without sharing it, while the command runs
 *   handles N       run `exit 0` N times; end with how many handles more the tracer then has
 *   environment N   start `exit 0` with an environment of N variables
 *   sleep EVENT     set the event, then wait forever
 */
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>
#include <winternl.h>

#define LINE_ROOM 65536

static wchar_t self[MAX_PATH];
static volatile LONG n_controls;

static void fail(const char *what)
{
	fprintf(stderr, "actor: %s: error %lu\n", what, GetLastError());
	exit(99);
}

static char *put_string(char *at, const wchar_t *text)
{
	*at++ = '"';
	for (; *text; text++) {
		if (*text >= ' ' && *text < 0x7f && *text != '"' && *text != '\\')
			*at++ = (char)*text;
		else
			at += sprintf(at, "\\u%04x", *text);
	}
	*at++ = '"';
	return at;
}

static void report(int argc, wchar_t **argv)
{
	static char line[LINE_ROOM * 6];
	static wchar_t log[MAX_PATH], directory[LINE_ROOM];
	char *at = line;
	HANDLE file;
	HANDLE one = CreateMutexW(NULL, FALSE, L"actor log"); /* Wine's appending is not atomic */
	DWORD n;

	if (!GetEnvironmentVariableW(L"ACTOR_LOG", log, MAX_PATH))
		return;
	GetCurrentDirectoryW(LINE_ROOM, directory);
	at += sprintf(at, "{\"directory\": ");
	at = put_string(at, directory);
	at += sprintf(at, ", \"arguments\": [");
	for (int i = 0; i < argc; i++) {
		at += sprintf(at, i ? ", " : "");
		at = put_string(at, argv[i]);
	}
	at += sprintf(at, "]}\n");
	WaitForSingleObject(one, INFINITE);
	file = CreateFileW(log, FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
			   OPEN_ALWAYS, 0, NULL);
	if (file == INVALID_HANDLE_VALUE || !WriteFile(file, line, (DWORD)(at - line), &n, NULL))
		fail("ACTOR_LOG");
	CloseHandle(file);
	ReleaseMutex(one);
}

static PROCESS_INFORMATION start(const wchar_t *program, wchar_t *line, const wchar_t *directory,
				 DWORD flags)
{
	STARTUPINFOW info = { .cb = sizeof(info) };
	PROCESS_INFORMATION started;

	if (!CreateProcessW(program, line, NULL, NULL, TRUE, flags, NULL, directory, &info, &started))
		fail("CreateProcess");
	CloseHandle(started.hThread);
	return started;
}

static int wait_for(HANDLE process)
{
	DWORD code;

	WaitForSingleObject(process, INFINITE);
	GetExitCodeProcess(process, &code);
	CloseHandle(process);
	return (int)code;
}

static int run_line(const wchar_t *program, wchar_t *line, const wchar_t *directory)
{
	return wait_for(start(program, line, directory, 0).hProcess);
}

static wchar_t *join(wchar_t **words)
{
	static wchar_t line[LINE_ROOM];

	line[0] = 0;
	for (; *words; words++) {
		wcscat(line, *words);
		if (words[1])
			wcscat(line, L" ");
	}
	return line;
}

static HANDLE start_self(const wchar_t *rest, DWORD flags)
{
	wchar_t line[MAX_PATH * 2];

	swprintf(line, MAX_PATH * 2, L"actor %ls", rest);
	return start(self, line, NULL, flags).hProcess;
}

static int tree(int depth, int n)
{
	wchar_t rest[64];

	for (int i = 0; depth > 0 && i < n; i++) {
		swprintf(rest, 64, L"tree %d %d", depth - 1, n);
		int status = wait_for(start_self(rest, 0));
		if (status)
			return status;
	}
	return 0;
}

static int many(int n)
{
	HANDLE running[8];
	int n_running = 0;

	while (n > 0 || n_running) {
		while (n > 0 && n_running < 8) {
			running[n_running++] = start_self(L"exit 0", 0);
			n--;
		}
		WaitForMultipleObjects((DWORD)n_running, running, TRUE, INFINITE);
		while (n_running)
			CloseHandle(running[--n_running]);
	}
	return 0;
}

static int leave(void)
{
	wchar_t rest[64];
	HANDLE own;

	DuplicateHandle(GetCurrentProcess(), GetCurrentProcess(), GetCurrentProcess(), &own, 0, TRUE,
			DUPLICATE_SAME_ACCESS);
	swprintf(rest, 64, L"after %lu", (unsigned long)(ULONG_PTR)own);
	start_self(rest, 0);
	return 0;
}

/* Start `sleep`, and return when it runs. */
static HANDLE start_sleep(void)
{
	SECURITY_ATTRIBUTES inherited = { sizeof(inherited), NULL, TRUE };
	HANDLE runs = CreateEventW(&inherited, TRUE, FALSE, NULL), child;
	wchar_t rest[64];

	swprintf(rest, 64, L"sleep %lu", (unsigned long)(ULONG_PTR)runs);
	child = start_self(rest, 0);
	WaitForSingleObject(runs, INFINITE);
	return child;
}

static int kill_child(void)
{
	HANDLE child = start_sleep();

	TerminateProcess(child, 9);
	return wait_for(child);
}

static int run_file(const wchar_t *name)
{
	static char bytes[LINE_ROOM];
	static wchar_t line[LINE_ROOM];
	FILE *file = _wfopen(name, L"rb");

	if (!file || !fread(bytes, 1, LINE_ROOM - 1, file))
		fail("line");
	fclose(file);
	MultiByteToWideChar(CP_UTF8, 0, bytes, -1, line, LINE_ROOM);
	return run_line(NULL, line, NULL);
}

static DWORD parent_id(void)
{
	PROCESS_BASIC_INFORMATION basic;

	NtQueryInformationProcess(GetCurrentProcess(), ProcessBasicInformation, &basic, sizeof(basic),
				  NULL);
	return (DWORD)basic.InheritedFromUniqueProcessId;
}

static int end_parent(void)
{
	return !TerminateProcess(OpenProcess(PROCESS_TERMINATE, FALSE, parent_id()), 9);
}

static int hold(const wchar_t *name, wchar_t *line)
{
	HANDLE file = CreateFileW(name, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
	int code;

	if (file == INVALID_HANDLE_VALUE)
		fail("hold");
	code = run_line(NULL, line, NULL);
	CloseHandle(file);
	return code;
}

/* Process id, type, attributes, handle, object, access: SYSTEM_HANDLE_TABLE_ENTRY_INFO. */
struct handle {
	USHORT pid, trace;
	UCHAR type, attributes;
	USHORT value;
	void *object;
	ULONG access;
};

static int count_handles(DWORD pid)
{
	static struct {
		ULONG n;
		struct handle handles[65536];
	} table;
	int n = 0;

	if (NtQuerySystemInformation((SYSTEM_INFORMATION_CLASS)16, &table, sizeof(table), NULL))
		fail("NtQuerySystemInformation");
	for (ULONG i = 0; i < table.n; i++)
		n += table.handles[i].pid == (USHORT)pid;
	return n;
}

static int leaked(int n)
{
	int before, after;

	wait_for(start_self(L"exit 0", 0)); /* what the first one alone opens */
	before = count_handles(parent_id());
	if (!before)
		fail("the tracer has no handles");
	for (int i = 0; i < n; i++)
		wait_for(start_self(L"exit 0", 0));
	after = count_handles(parent_id());
	return after > before ? after - before : 0;
}

static int large_environment(int n)
{
	wchar_t *block = calloc((size_t)n + 1, 64 * sizeof(wchar_t)), *at = block;
	wchar_t line[] = L"actor exit 0";
	STARTUPINFOW info = { .cb = sizeof(info) };
	PROCESS_INFORMATION started;

	at += swprintf(at, 64, L"SystemRoot=C:\\windows") + 1;
	for (int i = 1; i < n; i++)
		at += swprintf(at, 64, L"VARIABLE_%06d=%040d", i, i) + 1;
	if (!CreateProcessW(self, line, NULL, NULL, FALSE, CREATE_UNICODE_ENVIRONMENT, block, NULL,
			    &info, &started))
		fail("CreateProcess");
	return wait_for(started.hProcess);
}

static int in_job(DWORD flags)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
		.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_BREAKAWAY_OK,
	};
	HANDLE job = CreateJobObjectW(NULL, NULL);

	if (!SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof(limits)) ||
	    !AssignProcessToJobObject(job, GetCurrentProcess()))
		fail("AssignProcessToJobObject");
	return wait_for(start_self(L"exit 4", flags));
}

/*
 * Under Wine a program has its parameters when it runs, not when the job object reports it. At its
 * first breakpoint it has them, so it stays there, as it does when a person sits at the debugger,
 * for long enough that a tracer on a loaded machine reads them.
 */
static int debug(wchar_t *line)
{
	PROCESS_INFORMATION started = start(NULL, line, NULL, DEBUG_ONLY_THIS_PROCESS);
	DEBUG_EVENT event;

	while (WaitForDebugEvent(&event, INFINITE)) {
		if (event.dwDebugEventCode == EXCEPTION_DEBUG_EVENT)
			Sleep(3000);
		if (event.dwDebugEventCode == EXIT_PROCESS_DEBUG_EVENT) {
			int code = (int)event.u.ExitProcess.dwExitCode;

			ContinueDebugEvent(event.dwProcessId, event.dwThreadId, DBG_CONTINUE);
			return code;
		}
		ContinueDebugEvent(event.dwProcessId, event.dwThreadId, DBG_CONTINUE);
	}
	fail("WaitForDebugEvent");
	return (int)started.dwProcessId;
}

static LONG WINAPI handle(EXCEPTION_POINTERS *pointers)
{
	(void)pointers;
	ExitProcess(6);
}

static int raise_code(DWORD code)
{
	AddVectoredExceptionHandler(1, handle);
	RaiseException(code, 0, 0, NULL);
	return 1;
}

static int trap(void)
{
	AddVectoredExceptionHandler(1, handle);
	DebugBreak();
	return 1;
}

static BOOL WINAPI on_control(DWORD kind)
{
	if (kind == CTRL_C_EVENT)
		InterlockedIncrement(&n_controls);
	return TRUE;
}

static int control(void)
{
	SetConsoleCtrlHandler(NULL, FALSE);
	SetConsoleCtrlHandler(on_control, TRUE);
	if (!GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0))
		fail("GenerateConsoleCtrlEvent");
	while (!n_controls)
		Sleep(1);
	return 8;
}

static int copy_input(const wchar_t *name)
{
	HANDLE file = CreateFileW(name, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
	char bytes[4096];
	DWORD n, n_written;

	if (file == INVALID_HANDLE_VALUE)
		fail("write");
	while (ReadFile(GetStdHandle(STD_INPUT_HANDLE), bytes, sizeof(bytes), &n, NULL) && n)
		WriteFile(file, bytes, n, &n_written, NULL);
	CloseHandle(file);
	return 0;
}

static int act(wchar_t **argv)
{
	const wchar_t *what = argv[0];

	if (!wcscmp(what, L"exit"))
		return (int)wcstoul(argv[1], NULL, 0);
	if (!wcscmp(what, L"run"))
		return run_line(NULL, join(argv + 1), NULL);
	if (!wcscmp(what, L"line"))
		return run_file(argv[1]);
	if (!wcscmp(what, L"lone"))
		return wait_for(start_self(L"exit 0 x\xD83Dy", 0));
	if (!wcscmp(what, L"killer"))
		return end_parent();
	if (!wcscmp(what, L"in"))
		return run_line(NULL, join(argv + 2), argv[1]);
	if (!wcscmp(what, L"as"))
		return run_line(self, join(argv + 1), NULL);
	if (!wcscmp(what, L"tree"))
		return tree(_wtoi(argv[1]), _wtoi(argv[2]));
	if (!wcscmp(what, L"many"))
		return many(_wtoi(argv[1]));
	if (!wcscmp(what, L"leave"))
		return leave();
	if (!wcscmp(what, L"after")) {
		WaitForSingleObject((HANDLE)(ULONG_PTR)wcstoul(argv[1], NULL, 10), INFINITE);
		return wait_for(start_self(L"exit 0", 0));
	}
	if (!wcscmp(what, L"kill"))
		return kill_child();
	if (!wcscmp(what, L"stay"))
		return !start_sleep();
	if (!wcscmp(what, L"job"))
		return in_job(0);
	if (!wcscmp(what, L"breakaway"))
		return in_job(CREATE_BREAKAWAY_FROM_JOB);
	if (!wcscmp(what, L"debug"))
		return debug(join(argv + 1));
	if (!wcscmp(what, L"debugged"))
		return IsDebuggerPresent();
	if (!wcscmp(what, L"crash"))
		return *(volatile int *)(ULONG_PTR)(argv[1] != NULL);
	if (!wcscmp(what, L"trap"))
		return trap();
	if (!wcscmp(what, L"raise"))
		return raise_code(wcstoul(argv[1], NULL, 16));
	if (!wcscmp(what, L"write"))
		return copy_input(argv[1]);
	if (!wcscmp(what, L"erase"))
		return !DeleteFileW(argv[1]);
	if (!wcscmp(what, L"control"))
		return control();
	if (!wcscmp(what, L"hold"))
		return hold(argv[1], join(argv + 2));
	if (!wcscmp(what, L"handles"))
		return leaked(_wtoi(argv[1]));
	if (!wcscmp(what, L"environment"))
		return large_environment(_wtoi(argv[1]));
	if (!wcscmp(what, L"sleep")) {
		SetEvent((HANDLE)(ULONG_PTR)wcstoul(argv[1], NULL, 10));
		Sleep(INFINITE);
	}
	return 98;
}

int wmain(int argc, wchar_t **argv)
{
	wchar_t status[16];

	SetErrorMode(SEM_NOGPFAULTERRORBOX | SEM_FAILCRITICALERRORS);
	GetModuleFileNameW(NULL, self, MAX_PATH);
	report(argc, argv);
	if (GetEnvironmentVariableW(L"ACTOR_STATUS", status, 16))
		return _wtoi(status);
	return argc > 1 ? act(argv + 1) : 0;
}
