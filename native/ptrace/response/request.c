// SPDX-License-Identifier: Apache-2.0
/*
 * A name that a traced task gave -> the content of the regular file there, read with the rights of
 * the task's user and seen from its root directory. Runs in a thread of its own: any of these calls
 * may wait for a file system.
 */
#include "response/request.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "task/proc_name.h"

static bool has_groups; /* root's, which could not be dropped */

/* A number of the line of /proc/TID/status that begins with `key`: the one of the file system. */
static bool read_id(FILE *status, const char *key, unsigned int *id)
{
	char line[256];

	while (fgets(line, sizeof(line), status))
		if (!strncmp(line, key, strlen(key)))
			return sscanf(line + strlen(key), "%*u %*u %*u %u", id) == 1;
	return false;
}

bool request_find_user(struct request *request)
{
	char name[PROC_NAME_MAX];
	FILE *status;
	bool known;

	if (geteuid() != 0)
		return true;
	proc_name(name, request->tid, "status");
	status = fopen(name, "re");
	if (!status)
		return false;
	known = read_id(status, "Uid:", &request->uid) && read_id(status, "Gid:", &request->gid);
	fclose(status);
	return known;
}

/* The call itself: the one of the C library is for all threads. */
void request_drop_groups(void)
{
	has_groups = geteuid() == 0 && syscall(SYS_setgroups, 0, NULL) != 0;
}

/*
 * These calls tell no failure, such as that of a root without CAP_SETUID; an id that is none
 * changes nothing and answers with the present one. Who cannot drop groups has handed them to
 * all that is traced: the own user may be read for.
 */
static bool act_as_task(const struct request *request)
{
	if (geteuid() != 0)
		return true;
	setfsgid(request->gid);
	setfsuid(request->uid);
	return (unsigned int)setfsgid((gid_t)-1) == request->gid &&
	       (unsigned int)setfsuid((uid_t)-1) == request->uid &&
	       (!has_groups || request->uid == 0);
}

static void act_as_myself(void)
{
	if (geteuid() == 0) {
		setfsuid(0);
		setfsgid(getegid());
	}
}

/* The name alone is opened first: opening a device may do something. */
static int open_name(const struct request *request, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	char name[PROC_NAME_MAX];
	int root;
	int fd;

	if (!request->is_elsewhere)
		return open(path, O_PATH | O_CLOEXEC);
	proc_name(name, request->tid, "root");
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	close(root);
	return fd;
}

static int open_regular(const struct request *request, const char *path, size_t max)
{
	char name[PROC_NAME_MAX];
	struct stat st;
	int fd = open_name(request, path);
	int readable = -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)max) {
		proc_fd_name(name, getpid(), fd);
		readable = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	}
	close(fd);
	return readable;
}

ssize_t request_read(const struct request *request, const char *path, char *buffer, size_t max)
{
	size_t len = 0;
	ssize_t n = -1;
	int fd = -1;

	if (act_as_task(request))
		fd = open_regular(request, path, max);
	act_as_myself();
	if (fd < 0)
		return -1;
	while (len <= max && (n = read(fd, buffer + len, max + 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	return n < 0 || len > max ? -1 : (ssize_t)len;
}
