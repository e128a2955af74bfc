// SPDX-License-Identifier: Apache-2.0
/*
 * A capture without root holds a record lock (fcntl) on the file of this program, at the byte of its own
 * process number: only those who may read the file can lock it, the kernel says which process holds a lock,
 * and the lock goes with the process. Each one counts the others after it has locked its byte, so of two that
 * start together at least one sees the other. A lock that no capture would hold hides others: then nothing
 * starts, and the message names its holder.
 */
#include "bpf/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "capture/proc.h"

#define OWN_FILE "/proc/self/exe"
#define STATUS_BYTES 4096
#define TO_THE_END 0

struct count {
	int of_user;
	int of_machine;
	pid_t intruder; /* holds what no capture would, or 0 */
};

static char message[160];

/* The user who started a process, or this one where that cannot be seen. */
static unsigned int user_of(pid_t pid)
{
	char name[PROC_NAME_MAX];
	char status[STATUS_BYTES];
	const char *line;
	unsigned int uid;

	proc_name(name, pid, "status");
	proc_read(name, status, sizeof(status));
	line = strstr(status, "\nUid:");
	return line && sscanf(line, "\nUid: %u", &uid) == 1 ? uid : getuid();
}

/* Count the locks of others from `begin` to before `end`; TO_THE_END: all that follow. */
static bool count_others(int fd, off_t begin, off_t end, struct count *count)
{
	while (end == TO_THE_END || begin < end) {
		struct flock lock = { .l_type = F_WRLCK, .l_start = begin,
				      .l_len = end == TO_THE_END ? 0 : end - begin };

		if (fcntl(fd, F_GETLK, &lock) < 0)
			return false;
		if (lock.l_type == F_UNLCK)
			return true;
		if (lock.l_len != 1 || lock.l_start != lock.l_pid) {
			count->intruder = lock.l_pid;
			return true;
		}
		count->of_machine++;
		count->of_user += user_of(lock.l_pid) == getuid();
		if (count->of_machine >= SLOTS_OF_MACHINE || /* it is enough to know */
		    !count_others(fd, begin, lock.l_start, count))
			return count->of_machine >= SLOTS_OF_MACHINE;
		begin = lock.l_start + 1;
	}
	return true;
}

const char *slot_take(void)
{
	struct flock own = { .l_type = F_RDLCK, .l_start = getpid(), .l_len = 1 };
	struct count count = { 0 };
	int fd;

	if (getuid() == 0)
		return NULL;
	fd = open(OWN_FILE, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fcntl(fd, F_SETLK, &own) < 0 || !count_others(fd, 0, TO_THE_END, &count)) {
		snprintf(message, sizeof(message), "its own file cannot be locked: %s", strerror(errno));
		return message;
	}
	if (count.intruder)
		snprintf(message, sizeof(message), "process %d has locked the file of etrace-bpf: end that process",
			 (int)count.intruder);
	else if (count.of_user >= SLOTS_OF_USER)
		snprintf(message, sizeof(message), "%d captures of yours run already, the most without root",
			 SLOTS_OF_USER);
	else if (count.of_machine >= SLOTS_OF_MACHINE)
		snprintf(message, sizeof(message), "%d captures of users run already, the most for a machine",
			 SLOTS_OF_MACHINE);
	else
		return NULL; /* the descriptor stays open: closing it would release the lock */
	close(fd);
	return message;
}
