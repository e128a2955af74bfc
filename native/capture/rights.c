// SPDX-License-Identifier: Apache-2.0
/*
 * The effective ids are changed, not those of the file system alone: the kernel asks the effective ones, and
 * CAP_SYS_PTRACE, before it opens what /proc has of a process, a file of /proc/sys or one of FUSE. The real
 * and the saved id stay root's: the user can neither signal nor trace this process.
 */
#include "capture/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/proc.h"
#include "capture/program.h"

#define STATUS_BYTES (16 << 10)
#define READS_ALL ((uint64_t)1 << CAP_DAC_OVERRIDE | (uint64_t)1 << CAP_DAC_READ_SEARCH)
#define SAME ((unsigned int)-1)

/* ---- those of this process ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_root;
static struct rights own;
static struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
static struct __user_cap_data_struct own_sets[_LINUX_CAPABILITY_U32S_3];
static struct stat own_users; /* the user namespace */

static void note_own(void)
{
	int n = getgroups(RIGHTS_MOST_GROUPS, own.groups);

	is_root = geteuid() == 0;
	own.gid = getegid();
	own.n_groups = n < 0 ? 0 : (size_t)n;
	if (syscall(SYS_capget, &header, own_sets) < 0)
		memset(own_sets, 0, sizeof(own_sets));
	own.capabilities = own_sets[0].effective | (uint64_t)own_sets[1].effective << 32;
	if (stat("/proc/self/ns/user", &own_users) < 0)
		memset(&own_users, 0, sizeof(own_users));
}

/* Whether a task may look up whatever this process may. */
static bool are_ours(const struct rights *rights)
{
	if (rights->uid || rights->gid != own.gid || own.capabilities & ~rights->capabilities)
		return false;
	return own.capabilities & READS_ALL ||
	       (rights->n_groups == own.n_groups &&
		!memcmp(rights->groups, own.groups, own.n_groups * sizeof(own.groups[0])));
}

const struct rights *rights_own(void)
{
	pthread_once(&once, note_own);
	return &own;
}

/* ---- those of a task ---- */

/* What follows a key at the begin of a line of /proc/TID/status; "" when it has none. */
static const char *field_of(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? line + strlen(key) : "";
}

static bool read_groups(const char *at, struct rights *rights)
{
	char *end;

	for (rights->n_groups = 0;; at = end) {
		unsigned long group = strtoul(at, &end, 10);

		if (end == at)
			return true;
		if (rights->n_groups == RIGHTS_MOST_GROUPS)
			return false;
		rights->groups[rights->n_groups++] = (unsigned int)group;
		if (*end == ' ')
			end++;
		if (*end == '\n')
			return true;
	}
}

/* Capabilities in another user namespace count for nothing here. */
static bool has_our_users(pid_t tid)
{
	struct stat other;
	char name[PROC_NAME_MAX];

	proc_name(name, tid, "ns/user");
	return stat(name, &other) == 0 && own_users.st_ino == other.st_ino && own_users.st_dev == other.st_dev;
}

/* From the ids of the file system, the real ones and the effective capabilities. */
static void set(struct rights *rights, unsigned int uid, unsigned int gid, unsigned int real_uid,
		unsigned int real_gid, uint64_t capabilities)
{
	rights->is_raised = real_uid && (uid != real_uid || gid != real_gid);
	rights->uid = rights->is_raised ? real_uid : uid;
	rights->gid = rights->is_raised ? real_gid : gid;
	rights->capabilities = uid || real_uid ? 0 : capabilities;
}

bool rights_of_task(pid_t tid, struct rights *rights)
{
	char name[PROC_NAME_MAX];
	char status[STATUS_BYTES];
	unsigned long long effective;
	unsigned int uid, gid, real_uid, real_gid;

	pthread_once(&once, note_own);
	memset(rights, 0, sizeof(*rights));
	if (!is_root)
		return true;
	proc_name(name, tid, "status");
	if (!proc_read(name, status, sizeof(status)) ||
	    sscanf(field_of(status, "\nUid:"), "%u %*u %*u %u", &real_uid, &uid) != 2 ||
	    sscanf(field_of(status, "\nGid:"), "%u %*u %*u %u", &real_gid, &gid) != 2 ||
	    sscanf(field_of(status, "\nCapEff:"), "%llx", &effective) != 1 ||
	    !read_groups(field_of(status, "\nGroups:"), rights))
		return false;
	if (effective && !has_our_users(tid))
		effective = 0;
	set(rights, uid, gid, real_uid, real_gid, effective);
	return true;
}

/* ---- taking them ---- */

/* A change of rights forgets which signal this thread gets when its parent ends. */
struct parent {
	int signal;
	pid_t pid;
};

static void note_parent(struct parent *parent)
{
	parent->pid = getppid();
	if (prctl(PR_GET_PDEATHSIG, &parent->signal) < 0)
		parent->signal = 0;
}

static void watch_parent(const struct parent *parent)
{
	if (!parent->signal)
		return;
	prctl(PR_SET_PDEATHSIG, parent->signal);
	if (getppid() != parent->pid)
		kill(getpid(), parent->signal);
}

/* The calls of this thread only: those of the C library change all threads. */
static bool set_groups(const struct rights *rights)
{
	return syscall(SYS_setgroups, rights->n_groups, rights->groups) == 0;
}

static bool set_ids(unsigned int uid, unsigned int gid)
{
	if (uid) /* with which the right to change the other goes, */
		return syscall(SYS_setresgid, SAME, gid, SAME) == 0 && syscall(SYS_setresuid, SAME, uid, SAME) == 0;
	return syscall(SYS_setresuid, SAME, uid, SAME) == 0 && syscall(SYS_setresgid, SAME, gid, SAME) == 0;
}

static bool set_effective(uint64_t capabilities)
{
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	size_t i;

	memcpy(sets, own_sets, sizeof(sets));
	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		sets[i].effective &= (uint32_t)(capabilities >> 32 * i);
	return syscall(SYS_capset, &header, sets) == 0;
}

static void take_back(const struct parent *parent)
{
	bool is_back = set_effective(own.capabilities) && set_ids(0, own.gid) &&
		       set_effective(own.capabilities); /* the change of user made all effective */

	if (!is_back)
		die("root's rights do not come back: %s", strerror(errno));
	set_groups(&own);
	watch_parent(parent);
}

static bool take(const struct rights *rights, struct parent *parent)
{
	note_parent(parent);
	if (set_groups(rights) && set_ids(rights->uid, rights->gid) && set_effective(rights->capabilities))
		return true;
	take_back(parent);
	return false;
}

/* ---- opening with them ---- */

/* Before Linux 5.6 there is no openat2(): then names are opened for tasks with the rights of this process only. */
static int open_name(const char *path, int flags, uint64_t resolve, int root, bool has_taken)
{
	struct open_how how = {
		.flags = (uint64_t)flags | O_PATH | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS | (root < 0 ? 0 : RESOLVE_IN_ROOT),
	};
	int fd = (int)syscall(SYS_openat2, root < 0 ? AT_FDCWD : root, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM) && !resolve && root < 0 && !has_taken)
		fd = open(path, flags | O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int rights_open(const struct rights *rights, const char *path, int flags, uint64_t resolve, int root)
{
	struct parent parent;
	int fd;

	pthread_once(&once, note_own);
	if (!is_root || (rights && are_ours(rights)))
		return open_name(path, flags, resolve, root, false);
	if (!rights || !take(rights, &parent))
		return -EACCES;
	fd = open_name(path, flags, resolve, root, true);
	take_back(&parent);
	return fd;
}

int rights_reopen(const struct rights *rights, int fd, int flags)
{
	char name[PROC_NAME_MAX];
	struct parent parent;
	int opened;

	proc_fd_name(name, getpid(), fd);
	if (!is_root || are_ours(rights))
		return open(name, flags | O_CLOEXEC);
	if (!take(rights, &parent))
		return -1;
	opened = open(name, flags | O_CLOEXEC);
	take_back(&parent);
	return opened;
}
