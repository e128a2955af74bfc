// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* creat is an Open with O_CREAT|O_WRONLY|O_TRUNC. */
#include "expect.h"

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	int flags = O_CREAT | O_WRONLY | O_TRUNC;
	long fd;

	fd = MUST(creat_call("new", 0600));
	expect_open(&task, here("new"), here("new"), flags, 0600, fd);
	fd = MUST(creat_call(here("new"), 0));
	expect_open(&task, here("new"), here("new"), flags, 0, fd);
	make_dir("dir");
	MUST_FAIL(creat_call("dir", 0644), EISDIR);
	MUST_FAIL(creat_call(WILD, 0644), EFAULT);
	leave(&task, 0);
}
