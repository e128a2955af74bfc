// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Arguments: empty, long, many, with newlines and any byte. */
#include "expect.h"

#define MANY 3000
#define LONGEST (128 * 1024 - 1) /* MAX_ARG_STRLEN without its null byte */

static void child_execs(struct task *task, char **extra)
{
	struct task child = expect_child(task);
	static char *argv[MANY + 4] = { "", "--as" };
	long pid;
	int i;

	argv[2] = child.name;
	for (i = 0; extra[i]; i++)
		argv[3 + i] = extra[i];
	argv[3 + i] = NULL;
	pid = MUST(fork_call());
	if (pid) {
		expect_forked(task, &child, pid);
		wait_for(pid);
		return;
	}
	expect_exec(&child, self(), self(), argv);
	MUST(syscall(SYS_execve, self(), argv, environ));
}

static void lengths(struct task *task)
{
	static const size_t sizes[] = { 1, 899, 900, 901, 1800, 1801, 4096, 20000, LONGEST };
	char *args[16] = { NULL };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		args[i] = repeat((char)('a' + (int)i), sizes[i]);
	child_execs(task, args);
}

/* A newline at every place around the end of a part. */
static void newlines(struct task *task)
{
	char *args[16] = { NULL };

	for (size_t i = 0; i < 6; i++) {
		args[i] = repeat('n', 2000);
		args[i][897 + i] = '\n';
		args[i][1797 + i] = '\n';
	}
	args[6] = repeat('\n', 1801);
	child_execs(task, args);
}

static void many(struct task *task)
{
	static char *args[MANY + 1];

	for (int i = 0; i < MANY; i++)
		args[i] = text("%d", i);
	child_execs(task, args);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *odd[] = { "", "", "two\nlines", "\n", "a\n\n", "[0]x|y=z", "\xff\x01\x7f\xc3",
			"  ", "", NULL };
	char *none[] = { NULL };

	if (argc > 1 && !strcmp(argv[1], "--as"))
		leave(&task, 0);
	child_execs(&task, none);
	child_execs(&task, odd);
	lengths(&task);
	newlines(&task);
	many(&task);
	leave(&task, 0);
}
