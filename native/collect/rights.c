// SPDX-License-Identifier: Apache-2.0
/*
 * A collector runs as root for as long as a build does, and needs that only to open things. Above
 * all it must not fill the part of a disk that is kept for root, nor go over its owner's quota: so it
 * writes with the file system's uid of the trace's owner. Its real uid stays root's, or the owner
 * could end it.
 */
#include "collect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NONE ((uid_t)-1) /* setfsuid() of it changes nothing and returns the present one */

/* Memory that is locked goes on being locked; a file of stats is made at the end, anywhere. */
static u64 needed(void)
{
	u64 set = (u64)1 << CAP_IPC_LOCK;

	return options.stats ? set | (u64)1 << CAP_DAC_OVERRIDE : set;
}

static bool write_as_owner(int output)
{
	struct stat st;

	if (geteuid() != 0 || fstat(output, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_uid)
		return true;
	setfsgid(st.st_gid); /* before the uid, with which the right to do so goes */
	setfsuid(st.st_uid);
	return (uid_t)setfsuid(NONE) == st.st_uid;
}

static bool keep_capabilities(u64 wanted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	size_t i;

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (u32)(wanted >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) == 0;
}

void rights_drop(int output)
{
	if (!write_as_owner(output) || !keep_capabilities(needed()))
		say("cannot give up the rights of root: %s; continuing with them", strerror(errno));
}

/* ---- preference over the programs that are traced ---- */

#define NICE -10
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_BEST_EFFORT_FIRST (2 << 13)
#define OOM_SCORE_ADJ "-500" /* others first, but not at any price */

static void say_if_verbose(const char *what)
{
	if (options.verbose)
		say("%s: %s; continuing without", what, strerror(errno));
}

/*
 * Below a limit the kernel refuses every allocation that goes over it, not the locking. With a limit
 * of 0 it locks only for those to whom limits do not apply (CAP_IPC_LOCK).
 */
static int lock_memory(void)
{
	struct rlimit limit, none;
	int locked;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return -1;
	none = (struct rlimit){ 0, limit.rlim_max };
	if (limit.rlim_cur != RLIM_INFINITY && setrlimit(RLIMIT_MEMLOCK, &none) < 0)
		return -1;
	locked = mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	setrlimit(RLIMIT_MEMLOCK, &limit);
	return locked;
}

static bool be_spared(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd < 0)
		return false;
	n = write(fd, OOM_SCORE_ADJ, strlen(OOM_SCORE_ADJ));
	close(fd);
	return n > 0;
}

void priority_raise(void)
{
	if (setpriority(PRIO_PROCESS, 0, NICE) < 0)
		say_if_verbose("cannot raise the priority");
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_BEST_EFFORT_FIRST) < 0)
		say_if_verbose("cannot raise the priority of writing");
	if (lock_memory() < 0)
		say_if_verbose("cannot keep the memory from being swapped out");
	if (!be_spared())
		say_if_verbose("cannot get protection from the OOM killer");
}
