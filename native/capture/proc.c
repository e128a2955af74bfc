// SPDX-License-Identifier: Apache-2.0
/* What /proc says of processes. */
#include "capture/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

size_t proc_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

bool proc_read_flags(pid_t tid, int fd, unsigned int *flags)
{
	char file[32];
	char name[PROC_NAME_MAX];
	char text[256];
	const char *line;

	snprintf(file, sizeof(file), "fdinfo/%d", fd);
	proc_name(name, tid, file);
	proc_read(name, text, sizeof(text));
	line = strstr(text, "flags:");
	return line && sscanf(line, "flags: %o", flags) == 1;
}

void proc_read_comm(pid_t tid, char comm[PROC_COMM_MAX])
{
	char name[PROC_NAME_MAX];

	proc_name(name, tid, "comm");
	proc_read(name, comm, PROC_COMM_MAX);
	comm[strcspn(comm, "\n")] = '\0';
}

pid_t proc_parent(pid_t pid)
{
	char name[PROC_NAME_MAX];
	char stat[512];
	const char *at;
	pid_t parent = 0;

	proc_name(name, pid, "stat");
	proc_read(name, stat, sizeof(stat));
	at = strrchr(stat, ')');
	if (at)
		sscanf(at, ") %*c %d", &parent);
	return parent;
}

bool proc_is_own(const char *path)
{
	char own[PROC_NAME_MAX];
	size_t len;

	proc_name(own, getpid(), "");
	len = strlen(own) - 1; /* without the slash */
	return !strncmp(path, own, len) && (!path[len] || path[len] == '/');
}
