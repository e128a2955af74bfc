// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A process that others may not read (ssh-agent, gpg-agent): privileged backends see it whole.
 * needs: root
 */
#include "expect.h"

#include <sys/prctl.h>

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *again[] = { "again", "--as", task.name, NULL };
	long fd;

	if (argc > 1)
		leave(&task, 0);
	make_file("file");
	MUST(prctl(PR_SET_DUMPABLE, 0));
	fd = MUST(open("./file", O_RDONLY | O_CLOEXEC));
	expect_open(&task, here("file"), here("./file"), O_RDONLY | O_CLOEXEC, 0, fd);
	MUST(rename("file", "moved"));
	expect_path(&task, "RenameFrom", "RF", here("file"), -1);
	expect_path(&task, "RenameTo", "RT", here("moved"), -1);
	MUST(setresuid(65534, 65534, 65534));
	fd = MUST(open("moved", O_RDONLY));
	expect_open(&task, here("moved"), here("moved"), O_RDONLY, 0, fd);
	expect(&task, "Close|fd=3");
	expect_exec(&task, self(), self(), again);
	MUST(execv(self(), again));
}
