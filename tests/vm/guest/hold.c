// SPDX-License-Identifier: Apache-2.0
/*
 * hold: prints its pid and makes a renameat() that fails. hold.ko keeps it then from getting back
 * to user space, before the module has printed the call's lines.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	printf("%d\n", getpid());
	fflush(stdout);
	syscall(SYS_renameat, AT_FDCWD, "/no/such/file", AT_FDCWD, "/no/such/place");
	return 0;
}
