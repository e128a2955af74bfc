// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Environments, at the end of the trace: each variable and the processes started with it.
 * The runner compares pairs of variable and process, whatever their order and grouping.
 * options: --env
 */
#include "expect.h"

static const struct task nobody = { .name = "0" };

static void started_with(const struct task *task, char **variables)
{
	for (int i = 0; variables[i]; i++) {
		const char *variable = variables[i];
		unsigned int part = 0;

		expect(&nobody, "UPID|%s", task->name);
		do {
			char piece[901];

			snprintf(piece, sizeof(piece), "%s", variable);
			expect_item(&nobody, "Env", part++, piece);
			variable += strlen(piece);
		} while (*variable);
	}
}

static void child_execs(struct task *task, char **variables)
{
	struct task child = expect_child(task);
	char *argv[] = { "child", "--as", child.name, NULL };
	long pid = MUST(fork_call());

	if (pid) {
		expect_forked(task, &child, pid);
		wait_for(pid);
		return;
	}
	started_with(&child, variables);
	expect_exec(&child, self(), self(), argv);
	MUST(execve(self(), argv, variables));
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *newlines = repeat('n', 1800);
	char *none[] = { NULL };
	char *few[] = { "HOME=/nowhere", "EMPTY=", "no equals sign", "TWO=a\nb\n", "BYTES=\xff\x01",
			NULL };
	char *parts[] = { text("A=%s", repeat('a', 897)), text("B=%s", repeat('b', 898)),
			  text("C=%s", repeat('c', 899)), text("D=%s", repeat('d', 5000)), newlines,
			  NULL };

	if (argc > 1)
		leave(&task, 0);
	started_with(&task, environ);
	newlines[899] = '\n';
	newlines[900] = '\n';
	newlines[1799] = '\n';
	child_execs(&task, none);
	child_execs(&task, few);
	child_execs(&task, parts);
	child_execs(&task, few); /* the same variables in another process */
	leave(&task, 0);
}
