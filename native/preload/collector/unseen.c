// SPDX-License-Identifier: Apache-2.0
/*
 * Why a program did not load the library, from its file: a static program has no dynamic linker, the
 * linker of a set-user-ID program takes no library from the environment, and a library fits one
 * machine only. A program that makes its own system calls records nothing, and one in another
 * namespace only that it is there; what they start is not known. The file is read when all is over,
 * and may be another one by then.
 */
#include "library.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "capture/program_file.h"
#include "capture/report.h"

#define SHOWN_BYTES 300
#define MAX_LATE 256

enum reason {
	REASON_STATIC,
	REASON_PRIVILEGED,
	REASON_OTHER_SIZE,
	REASON_UNKNOWN,
	REASON_UNREADABLE, /* this and the next ones also hide what they start */
	REASON_SILENT,
	REASON_OUTSIDE,
	REASON_LIMITED,
	N_REASONS,
};

static struct {
	u64 n;
	char names[SHOWN_BYTES];
	bool is_cut;
} unseen[N_REASONS];

/* Processes whose last program was counted without a reason: the reason may come late. */
static struct {
	pid_t pids[MAX_LATE];
	size_t n;
} unexplained;

static bool take_unexplained(pid_t pid)
{
	size_t i;

	for (i = 0; i < MAX_LATE; i++)
		if (unexplained.pids[i] == pid) {
			unexplained.pids[i] = 0;
			return true;
		}
	return false;
}

static enum reason reason_of_elf(const char *head, size_t n)
{
	int class = head[EI_CLASS];
	const char *loader;

	if (n < sizeof(Elf64_Ehdr) || !program_file_loader(head, n, &loader))
		return REASON_STATIC;
	if (class == (sizeof(long) == 8 ? ELFCLASS32 : ELFCLASS64) && !library_has_other_size())
		return REASON_OTHER_SIZE;
	return REASON_UNKNOWN;
}

static bool take_interpreter(const char *head, struct name *interpreter)
{
	size_t n;
	const char *start = program_file_interpreter(head, &n);

	if (!start)
		return false;
	name_set(interpreter, start, n);
	name_resolve_directories(interpreter);
	return true;
}

static enum reason find_reason(struct name *program)
{
	char head[FILE_HEAD_BYTES];
	struct stat st;
	size_t n = program_file_head(program->text, head, &st);

	if (n && take_interpreter(head, program))
		n = program_file_head(program->text, head, &st);
	if (n < SELFMAG || memcmp(head, ELFMAG, SELFMAG))
		return REASON_UNKNOWN;
	if (st.st_mode & (S_ISUID | S_ISGID) ||
	    getxattr(program->text, "security.capability", NULL, 0) > 0)
		return REASON_PRIVILEGED;
	return reason_of_elf(head, n);
}

/* The number is of a record, which any program of the build may have written. */
static enum reason reason_of_hidden(int hidden)
{
	switch (hidden) {
	case HIDDEN_OUTSIDE:
		return REASON_OUTSIDE;
	case HIDDEN_LIMITED:
		return REASON_LIMITED;
	default:
		return REASON_UNREADABLE;
	}
}

static void add_name(enum reason reason, const struct etrace_text *path)
{
	char *names = unseen[reason].names;
	size_t len = strlen(names);
	char name[SHOWN_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)path->len, path->text);
	if (strstr(names, name))
		return;
	if (len + strlen(name) + 3 > SHOWN_BYTES)
		unseen[reason].is_cut = true;
	else
		sprintf(names + len, "%s%s", len ? ", " : "", name);
}

void unseen_add(pid_t pid, const struct etrace_text *path, int hidden, struct name *interpreter)
{
	enum reason reason;

	name_set(interpreter, path->text, path->len);
	reason = find_reason(interpreter);
	if (hidden)
		reason = reason_of_hidden(hidden);
	if (reason == REASON_UNKNOWN)
		unexplained.pids[unexplained.n++ % MAX_LATE] = pid;
	unseen[reason].n++;
	add_name(reason, path);
}

void unseen_add_silent(const char *path)
{
	unseen[REASON_SILENT].n++;
	add_name(REASON_SILENT, &(struct etrace_text){ path, strlen(path) });
}

void unseen_add_outside(pid_t pid, const struct etrace_text *path, int hidden)
{
	if (take_unexplained(pid)) /* it ended before its message was read */
		unseen[REASON_UNKNOWN].n--;
	unseen[reason_of_hidden(hidden)].n++;
	add_name(reason_of_hidden(hidden), path);
}

void unseen_report(void)
{
	static const char *const kinds[N_REASONS] = {
		[REASON_STATIC] = "static programs",
		[REASON_PRIVILEGED] = "set-user-ID programs",
		[REASON_OTHER_SIZE] = "32-bit programs, for which this etrace has no library",
		[REASON_UNKNOWN] = "programs that did not load the library",
		[REASON_UNREADABLE] = "programs in a root directory, or as a user, without the library",
		[REASON_SILENT] = "programs that make their own system calls",
		[REASON_OUTSIDE] = "programs in another PID or user namespace",
		[REASON_LIMITED] = "programs whose limits (ulimit -v, -n) leave no room for the library",
	};
	int i;

	for (i = 0; i < N_REASONS; i++)
		if (unseen[i].n)
			report_warn("%llu %s of %s: %s%s; what they opened%s is not in the trace",
			     (unsigned long long)unseen[i].n,
			     unseen[i].n == 1 ? "execution was" : "executions were", kinds[i],
			     unseen[i].names, unseen[i].is_cut ? ", .." : "",
			     i < REASON_UNREADABLE ? "" : " and started");
}

u64 unseen_count(void)
{
	u64 n = 0;
	int i;

	for (i = 0; i < N_REASONS; i++)
		n += unseen[i].n;
	return n;
}

u64 unseen_untraced(void)
{
	u64 n = 0;
	int i;

	for (i = REASON_UNREADABLE; i < N_REASONS; i++)
		n += unseen[i].n;
	return n;
}
