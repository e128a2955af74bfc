// SPDX-License-Identifier: Apache-2.0
/*
 * Files for the user who called sudo are made with that user's rights (the uid of the file system):
 * links in their directory cannot make root open a file that they cannot open.
 *
 * Arguments and environments hold secrets, so only the owner can read a trace and the files beside
 * it.
 *
 * With --folder all files are below its descriptor: nobody can turn the name of the directory.
 */
#include "capture/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/program.h"
#include "capture/rlimits.h"

#define STARTING ".starting"
#define OLD ".old"
#define MAX_ROTATED 8
#define MAX_ATTEMPTS 8
#define MARK_MAX 128
#define NS_PER_SECOND 1000000000ll

static struct {
	bool given;
	uid_t uid;
	gid_t gid;
} owner;

static int folder = AT_FDCWD;
static int marks = -1;
static const char *rotated[MAX_ROTATED];
static size_t n_rotated;

static struct {
	const char *trace;
	char *name; /* of the trace before it has its own; NULL when it has */
	bool aside;
} pending;

void output_set_owner(const char *text)
{
	char end;

	owner.given = sscanf(text, "%u:%u%c", &owner.uid, &owner.gid, &end) == 2;
	if (!owner.given || owner.uid == (uid_t)-1 || owner.gid == (gid_t)-1)
		die("--owner %s: not UID:GID", text);
}

void output_set_folder(const char *text)
{
	char end;

	if (sscanf(text, "%d%c", &folder, &end) != 1 || folder < 0 ||
	    fcntl(folder, F_SETFD, FD_CLOEXEC) < 0)
		die("--folder %s: not an open descriptor", text);
}

void output_set_marks(const char *text)
{
	marks = program_take_fd("--marks", text);
}

void output_keep_folders(void)
{
	if (folder != AT_FDCWD)
		fcntl(folder, F_SETFD, 0);
	if (marks >= 0)
		fcntl(marks, F_SETFD, 0);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What openat(2) and its like take with `folder`. */
static const char *below(const char *path)
{
	return folder == AT_FDCWD ? path : name_of(path);
}

static int look_at(const char *path, struct stat *st)
{
	return fstatat(folder, below(path), st, AT_SYMLINK_NOFOLLOW);
}

void output_add_rotated(const char *path)
{
	if (n_rotated == MAX_ROTATED)
		die("--rotate %s: more than %d files", path, MAX_ROTATED);
	rotated[n_rotated++] = path;
}

/* The gid first: with the uid goes the right to change it. errno stays. */
static void act_as_owner(void)
{
	if (owner.given && geteuid() == 0) {
		setfsgid(owner.gid);
		setfsuid(owner.uid);
	}
}

static void act_as_myself(void)
{
	int error = errno;

	if (owner.given && geteuid() == 0) {
		setfsuid(geteuid());
		setfsgid(getegid());
	}
	errno = error;
}

static int open_as_owner(const char *path, int flags)
{
	int fd;

	act_as_owner();
	fd = openat(folder, below(path), flags | O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	act_as_myself();
	return fd;
}

int output_create(const char *path)
{
	return open_as_owner(path, O_EXCL | O_NOFOLLOW);
}

void output_remove(const char *path)
{
	act_as_owner();
	unlinkat(folder, below(path), 0);
	act_as_myself();
}

/* A file that was there before others may read. */
static void make_private(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0077))
		fchmod(fd, 0600); /* another user's file keeps its mode */
}

/* Root does not follow a link that another user may have put there. */
int output_open(const char *path)
{
	struct stat st;
	int fd;

	if (geteuid() == 0) {
		if (look_at(path, &st) < 0 || !S_ISREG(st.st_mode))
			return open_as_owner(path, O_NOFOLLOW);
		output_remove(path);
		return output_create(path); /* nor is a hard link put there in the meantime */
	}
	fd = open_as_owner(path, 0);
	if (fd >= 0)
		make_private(fd);
	return fd;
}

int output_rename(const char *from, const char *to)
{
	int result;

	act_as_owner();
	result = renameat(folder, below(from), folder, below(to));
	act_as_myself();
	return result;
}

void output_mark(const char *path)
{
	char name[MARK_MAX];
	struct stat st;
	int fd;

	if (marks < 0 || look_at(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	snprintf(name, sizeof(name), "file-%llu-%llu-%lld-%lld", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino, (long long)st.st_size,
		 (long long)st.st_ctim.tv_sec * NS_PER_SECOND + st.st_ctim.tv_nsec);
	act_as_owner();
	fd = openat(marks, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
	act_as_myself();
	if (fd >= 0)
		close(fd);
}

static bool put_all(int fd, void (*put)(FILE *file))
{
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	bool failed;

	if (!file)
		return false;
	put(file);
	failed = ferror(file);
	return fclose(file) == 0 && !failed;
}

void output_write_whole(const char *path, const char *what, void (*put)(FILE *file))
{
	char *temporary;
	int fd;

	if (asprintf(&temporary, "%s.%d.tmp", path, getpid()) < 0)
		die("out of memory");
	fd = output_create(temporary);
	if (!put_all(fd, put) || output_rename(temporary, path) < 0) {
		say("cannot write the %s '%s': %s%s", what, path, strerror(errno), limits_blame(errno));
		if (fd >= 0)
			output_remove(temporary);
	}
	free(temporary);
}

static bool is_locked(const char *path)
{
	int fd = openat(folder, below(path),
			O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

static bool is_there(const char *path)
{
	struct stat st;

	return look_at(path, &st) == 0;
}

static bool is_still(const char *path, int fd)
{
	struct stat named, open;

	return look_at(path, &named) == 0 && fstat(fd, &open) == 0 && named.st_dev == open.st_dev &&
	       named.st_ino == open.st_ino;
}

static void refuse_second(const char *trace, bool is_own) __attribute__((noreturn));

/* `is_own`: the file under the first name is this capture's, and goes. */
static void refuse_second(const char *trace, bool is_own)
{
	if (!is_own)
		pending.name = NULL;
	die("cannot write the trace '%s': another capture is writing it", trace);
}

/* What a capture left that was killed before its command ran holds nothing: it is removed. */
static int create_starting(const char *trace)
{
	int attempt, fd;

	for (attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		fd = output_create(pending.name);
		if (fd >= 0 || errno != EEXIST)
			return fd;
		if (is_locked(pending.name))
			refuse_second(trace, false);
		output_remove(pending.name);
	}
	return -1;
}

int output_begin(const char *trace)
{
	int fd;

	if (!n_rotated)
		return output_open(trace);
	if (asprintf(&pending.name, "%s" STARTING, trace) < 0)
		die("out of memory");
	pending.trace = trace;
	fd = create_starting(trace);
	if (fd < 0) {
		pending.name = NULL; /* nothing of ours to remove */
		return fd;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_still(pending.name, fd))
		refuse_second(trace, false);
	if (is_locked(trace))
		refuse_second(trace, true);
	return fd;
}

/* Without an older trace, files that were renamed before stay. */
static void put_aside(const char *path)
{
	char *old;

	if (asprintf(&old, "%s" OLD, path) < 0)
		die("out of memory");
	if (is_there(path)) {
		if (output_rename(path, old) < 0)
			die("cannot rename the older '%s': %s", path, strerror(errno));
	} else if (pending.aside) {
		output_remove(old); /* it belongs to the trace that was renamed before */
	}
	free(old);
}

bool output_publish(void)
{
	size_t i;

	if (!pending.name)
		return false;
	pending.aside = is_there(pending.trace);
	if (pending.aside)
		put_aside(pending.trace);
	for (i = 0; i < n_rotated; i++)
		put_aside(rotated[i]);
	if (output_rename(pending.name, pending.trace) < 0)
		die("cannot write the trace '%s': %s", pending.trace, strerror(errno));
	free(pending.name);
	pending.name = NULL;
	return pending.aside;
}

void output_discard(void)
{
	if (pending.name)
		output_remove(pending.name);
}

bool output_is_published(void)
{
	return !pending.name;
}
