// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Names of threads: set by prctl, and by each exec before its New_proc.
 * options: --thread-names
 */
#include "expect.h"

#include <sys/prctl.h>

static void named(struct task *task, const char *name)
{
	expect(task, "Comm|size=%zu", strlen(name));
	expect_string(task, "CN", name);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *again[] = { "x", "--as", task.name, NULL };

	if (argc > 1)
		leave(&task, 0);
	MUST(prctl(PR_SET_NAME, "worker"));
	named(&task, "worker");
	MUST(prctl(PR_SET_NAME, "worker"));
	named(&task, "worker");
	MUST(prctl(PR_SET_NAME, "sixteen bytes or more"));
	named(&task, "sixteen bytes o");
	MUST(prctl(PR_SET_NAME, ""));
	named(&task, "");
	MUST(prctl(PR_SET_NAME, "two\nlines\xff"));
	named(&task, "two\nlines\xff");
	MUST_FAIL(prctl(PR_SET_NAME, WILD), EFAULT);
	MUST(prctl(PR_SET_PDEATHSIG, 0));

	MUST(symlink(self(), "a-name-of-many-bytes"));
	expect_symlink(&task, self(), self(), here("a-name-of-many-bytes"));
	MUST_FAIL(execv("absent", again), ENOENT);
	named(&task, "a-name-of-many-");
	expect_exec(&task, here("a-name-of-many-bytes"), here("a-name-of-many-bytes"), again);
	MUST(execv("./a-name-of-many-bytes", again));
}
