// SPDX-License-Identifier: Apache-2.0
/*
 * A collector runs as root for as long as a build does, and needs that only to open things. Above
 * all it must not fill the part of a disk that is kept for root, nor go over its owner's quota: so it
 * writes with the file system's uid of the trace's owner. Its real uid stays root's, or the owner
 * could end it.
 */
#include "rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect.h"

#define NONE ((uid_t)-1) /* setfsuid() of it changes nothing and tells what is */

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
