// SPDX-License-Identifier: Apache-2.0
/*
 * Whose rights the program has. Root's capability to read everything (CAP_DAC_READ_SEARCH) may stay,
 * for files that only root may read: it goes through execve() as an ambient one.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READS_ALL (1u << CAP_DAC_READ_SEARCH)

int user_become(const struct sandbox *box)
{
	if (!box->changes_user)
		return 0;
	if (box->reads_all && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -1;
	if (box->reads_all) /* else access(2) does without them; a container may not allow it */
		prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
	if (setgroups(box->n_groups, box->groups) < 0 ||
	    setresgid(box->gid, box->gid, box->gid) < 0 ||
	    setresuid(box->uid, box->uid, box->uid) < 0)
		return -1;
	return 0;
}

int user_drop_capabilities(const struct sandbox *box)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint32_t kept = 0;

	if (box->changes_user && box->reads_all) {
		if (syscall(SYS_capget, &header, data) < 0)
			return -1;
		kept = data[0].permitted & READS_ALL; /* a container may lack it */
		memset(data, 0, sizeof(data));
	}
	data[0].effective = data[0].permitted = data[0].inheritable = kept;
	if (syscall(SYS_capset, &header, data) < 0)
		return -1;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -1;
	if (kept && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) < 0)
		return -1;
	return 0;
}
