// SPDX-License-Identifier: Apache-2.0
#include "capture/rights.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/proc.h"

#define STATUS_BYTES (16 << 10)
#define READS_ALL (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH)

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
	struct stat own, other;
	char name[PROC_NAME_MAX];

	proc_name(name, tid, "ns/user");
	return stat(name, &other) == 0 && stat("/proc/self/ns/user", &own) == 0 &&
	       own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

void rights_set(struct rights *rights, unsigned int uid, unsigned int gid, unsigned int real_uid,
		unsigned int real_gid, bool reads_all)
{
	rights->uid = uid;
	rights->gid = gid;
	rights->reads_all = reads_all && !real_uid;
	rights->is_raised = uid != real_uid || gid != real_gid;
}

bool rights_of_task(pid_t tid, struct rights *rights)
{
	char name[PROC_NAME_MAX];
	char status[STATUS_BYTES];
	unsigned long long effective;
	unsigned int uid, gid, real_uid, real_gid;

	memset(rights, 0, sizeof(*rights));
	if (geteuid() != 0)
		return true;
	proc_name(name, tid, "status");
	if (!proc_read(name, status, sizeof(status)) ||
	    sscanf(field_of(status, "\nUid:"), "%u %*u %*u %u", &real_uid, &uid) != 2 ||
	    sscanf(field_of(status, "\nGid:"), "%u %*u %*u %u", &real_gid, &gid) != 2 ||
	    sscanf(field_of(status, "\nCapEff:"), "%llx", &effective) != 1 ||
	    !read_groups(field_of(status, "\nGroups:"), rights))
		return false;
	rights_set(rights, uid, gid, real_uid, real_gid, effective & READS_ALL && has_our_users(tid));
	return true;
}

/* ---- taking them ---- */

static struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
static __thread struct __user_cap_data_struct before[_LINUX_CAPABILITY_U32S_3];
static __thread bool has_taken;

/* The calls of this thread only: those of the C library change all threads. */
static bool set_capabilities(struct __user_cap_data_struct *data)
{
	return syscall(SYS_capset, &header, data) == 0;
}

/* All of them: CAP_SYS_PTRACE, which setfsuid() leaves, opens the links and maps of any process in /proc. */
static bool give_up_capabilities(void)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	size_t i;

	memcpy(data, before, sizeof(data));
	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i].effective = 0;
	return set_capabilities(data);
}

/* setfsuid() reports no failure: an id that is not one returns the present one and changes nothing. */
static bool become(unsigned int uid, unsigned int gid)
{
	setfsgid(gid);
	setfsuid(uid);
	return (unsigned int)setfsgid((gid_t)-1) == gid && (unsigned int)setfsuid((uid_t)-1) == uid;
}

bool rights_take(const struct rights *rights)
{
	if (geteuid() != 0)
		return true;
	if (!rights)
		return false;
	if (rights->reads_all)
		return true;
	if (syscall(SYS_capget, &header, before) < 0)
		return false;
	has_taken = true;
	if (syscall(SYS_setgroups, rights->n_groups, rights->groups) == 0 && become(rights->uid, rights->gid) &&
	    give_up_capabilities())
		return true;
	rights_return();
	return false;
}

void rights_return(void)
{
	if (!has_taken)
		return;
	has_taken = false;
	set_capabilities(before); /* with which the right to change the rest comes back */
	setfsuid(0);
	setfsgid(getegid());
	set_capabilities(before);
}
