// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* A program of one mode executes the same program of the other mode: both are traced alike. */
#include "expect.h"

/* The folders 64 and 32 lie side by side. */
static char *other_mode(void)
{
	char *path = self();
	char *name = strrchr(path, '/');

	*name = 0;
	memcpy(name - 2, sizeof(long) == 8 ? "32" : "64", 2);
	*name = '/';
	return path;
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *again[] = { "other", "--as", task.name, NULL };
	long fd;

	fd = MUST(open("new", O_CREAT | O_RDWR, 0644));
	expect_open(&task, here("new"), here("new"), O_CREAT | O_RDWR, 0644, fd);
	if (argc > 1)
		leave(&task, 0);
	expect_exec(&task, other_mode(), other_mode(), again);
	MUST(execv(other_mode(), again));
}
