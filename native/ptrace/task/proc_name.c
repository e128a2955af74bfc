// SPDX-License-Identifier: Apache-2.0
/* Names below /proc of a traced task: see proc_name.h. */
#include "task/proc_name.h"

#include <string.h>

/* snprintf() costs as much as the readlink() of a short path: this is called for every open. */
static char *put_number(char *at, int number)
{
	char digits[12];
	char *digit = digits + sizeof(digits);
	size_t n;

	do {
		*--digit = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	n = (size_t)(digits + sizeof(digits) - digit);
	memcpy(at, digit, n);
	return at + n;
}

static void put_file(char name[PROC_NAME_MAX], char *at, const char *file)
{
	*at++ = '/';
	strncpy(at, file, (size_t)(name + PROC_NAME_MAX - 1 - at));
	name[PROC_NAME_MAX - 1] = '\0';
}

void proc_name(char name[PROC_NAME_MAX], pid_t tid, const char *link)
{
	memcpy(name, "/proc/", 6);
	put_file(name, put_number(name + 6, tid), link);
}

void proc_thread_name(char name[PROC_NAME_MAX], pid_t tid, const char *file)
{
	char *at;

	memcpy(name, "/proc/", 6);
	at = put_number(name + 6, tid);
	memcpy(at, "/task/", 6);
	put_file(name, put_number(at + 6, tid), file);
}

void proc_fd_name(char name[PROC_NAME_MAX], pid_t tid, int fd)
{
	char *at;

	memcpy(name, "/proc/", 6);
	at = put_number(name + 6, tid);
	memcpy(at, "/fd/", 4);
	*put_number(at + 4, fd) = '\0';
}
