// SPDX-License-Identifier: Apache-2.0
/* Preference over the programs that are traced: a collector that is late or killed loses records. */
#include "priority.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect.h"

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
