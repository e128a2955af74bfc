# SPDX-License-Identifier: Apache-2.0
"""A thread of the build changes the memory of a call that is under way."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from backends import BPF, capture, need_root

pytestmark = pytest.mark.root
SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int begun, is_over;
static volatile struct { unsigned long long flags, mode, resolve; } how;
static void *forge(void *nothing)
{
	while (!is_over) {
		while (!begun && !is_over)
			;
		while (syscall(SYS_fcntl, 4, F_GETFD, 0) < 0 && begun)
			;
		how.flags = O_RDONLY;
		begun = 0;
	}
	return nothing;
}
int main(void)
{
	char name[32];
	pthread_t thread;
	int i;
	close_range(3, ~0U, 0);
	open("/dev/null", O_RDONLY);
	pthread_create(&thread, NULL, forge, NULL);
	for (i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "out%d", i);
		how.flags = O_WRONLY | O_CREAT | O_APPEND;
		how.mode = 0600;
		begun = 1;
		if (syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how)) != 4)
			return 1;
		while (begun)
			;
		close(4);
	}
	is_over = 1;
	return pthread_join(thread, NULL);
}
"""


def test_what_openat2_opened_a_file_for_is_what_the_file_says(folder: Path) -> None:
    need_root()
    subprocess.run(
        ["cc", "-O2", "-pthread", "-x", "c", "-", "-o", folder / "forges"],
        input=SOURCE, text=True, check=True,
    )  # fmt: skip
    done = capture(["./forges"], folder, backend=BPF)
    assert done.status == 0, done.stderr
    opens = re.findall(
        rb"Open\|fnamesize=\d+,forigsize=\d+,flags=(\d+),mode=\d+,fd=4\n[^\n]*!FN\|[^\n]*/out",
        done.trace.read_bytes(),
    )
    assert len(opens) == 400
    assert {int(flags) & 0o2003 for flags in opens} == {0o2001}
