/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Generic netlink family `etrace`: how user space drives the kernel module. One session at a time;
 * it belongs to the socket that started it and ends when that socket is closed.
 *
 * START: ROOT_PID or CGROUP, OPTIONS, INSTANCE -> SESSION, ROOT_UPID, MISSING_PROBE. Needs
 *	CAP_SYS_ADMIN in the initial user namespace, of the caller and of who opened the socket.
 *	Makes the ftrace instance when it is not there; the event need not be enabled in it. -EBUSY
 *	while a session runs, is being started or stopped, when the event has a filter or, with
 *	ISOLATE, when others watch system calls; -ENOSPC when tracing_on of the instance is 0 or its
 *	buffer full. The error's message (extack) says which in words.
 * STOP: [SESSION] -> what STATUS gives, after the last record was committed. Any privileged caller
 *	may stop. The records stay readable; the instance is released. -ENOENT when none runs,
 *	-EBUSY while one is being started. The answer (and NLM_F_ACK's) comes when the session has
 *	ended: 2 s later if a traced task is held on its way to user space. Nobody else waits
 *	meanwhile. Who asks while it is STOPPING is answered too; who closes the socket is not, and
 *	the session ends all the same.
 * STATUS -> STATE, SESSION, OPTIONS, INSTANCE, ... and all counters, the last session's after STOP;
 *	STATE alone when there was none yet and while one is being started. At once, for everybody.
 *	A START that fails once it has begun to probe clears them.
 *
 * Multicast group `events`: NOTIFY with NOTICE, SESSION.
 */
#ifndef ETRACE_CONTROL_H
#define ETRACE_CONTROL_H

#define ETRACE_GENL_NAME "etrace"
#define ETRACE_GENL_VERSION 1
#define ETRACE_GENL_GROUP "events"

#define ETRACE_INSTANCE_DEFAULT "etrace" /* below tracefs/instances */
#define ETRACE_INSTANCE_BYTES 64 /* longest name, with its null byte */
#define ETRACE_TRACE_SYSTEM "etrace" /* events/etrace/etrace_record in the instance */

enum etrace_command {
	ETRACE_CMD_UNSPEC,
	ETRACE_CMD_START,
	ETRACE_CMD_STOP,
	ETRACE_CMD_STATUS,
	ETRACE_CMD_NOTIFY, /* multicast only */
};

enum etrace_attribute {
	ETRACE_ATTR_UNSPEC,
	ETRACE_ATTR_PAD,
	ETRACE_ATTR_ROOT_PID, /* u32, in the caller's pid namespace; any thread of the process */
	ETRACE_ATTR_CGROUP, /* string, path below the cgroup2 mount, "/..." */
	ETRACE_ATTR_OPTIONS, /* u32, ETRACE_OPTION_* */
	ETRACE_ATTR_INSTANCE, /* string */
	ETRACE_ATTR_SESSION, /* u32, counts up from 1 since the module was loaded */
	ETRACE_ATTR_ROOT_UPID, /* u64 */
	ETRACE_ATTR_STATE, /* u32, enum etrace_state */
	ETRACE_ATTR_NOTICE, /* u32, enum etrace_notice */
	ETRACE_ATTR_COUNTERS, /* nested: u64 each, the attribute type is enum etrace_counter + 1 */
	ETRACE_ATTR_MISSING_PROBE, /* string, repeated: a function that could not be probed */
	ETRACE_ATTR_STARTED_NS, /* u64, CLOCK_MONOTONIC */
	ETRACE_ATTR_OWNER_PID, /* u32, process that sent START, in the first pid namespace */
	ETRACE_N_ATTRIBUTES,
};

enum etrace_state {
	ETRACE_STATE_IDLE, /* no session since the module was loaded */
	ETRACE_STATE_RUNNING,
	ETRACE_STATE_STOPPED,
	ETRACE_STATE_STOPPING, /* until the last record is committed; RUNNING's attributes */
	ETRACE_STATE_STARTING,
	ETRACE_N_STATES,
};

enum etrace_notice {
	ETRACE_NOTICE_LOSS = 1, /* the first record was lost */
	ETRACE_NOTICE_ROOT_EXITED,
	ETRACE_NOTICE_EMPTY, /* no traced task is left */
	ETRACE_NOTICE_STOPPED, /* by STOP or because its owner went */
};

#define ETRACE_OPTION_THREAD_NAMES 0x1 /* Comm */
#define ETRACE_OPTION_ENVIRONMENT 0x2 /* UPID, Env: of all, not of make and ninja alone */
#define ETRACE_OPTION_MOUNTS 0x4 /* Mount, Umount */
#define ETRACE_OPTION_ISOLATE 0x8 /* untraced tasks pay nothing; see START */
#define ETRACE_OPTION_OPEN_ONCE 0x10 /* leave out a read-only open repeated by the same execution */
#define ETRACE_OPTION_DESCENDANTS 0x20 /* also what the root has started before */
/*
 * For an owner who acts for an ordinary user: a task that executes a program which this user may
 * not watch (set-uid, set-gid, with capabilities, unreadable) is not traced from that execution on.
 * With ROOT_PID only.
 */
#define ETRACE_OPTION_UNPRIVILEGED 0x40
#define ETRACE_OPTION_USAGE 0x80 /* Usage */
#define ETRACE_OPTIONS_ALL 0xff

/* Since the session's start; LIVE is a level. */
enum etrace_counter {
	ETRACE_COUNT_EVENTS, /* written whole */
	ETRACE_COUNT_RECORDS, /* committed */
	ETRACE_COUNT_LOST_EVENTS, /* at least one record could not be written */
	ETRACE_COUNT_LOST_RECORDS,
	ETRACE_COUNT_LIVE, /* traced tasks now */
	ETRACE_COUNT_TASKS, /* ever traced */
	ETRACE_COUNT_UNTRACKED, /* tasks left out: no memory */
	ETRACE_COUNT_UNREAD_STRINGS, /* user memory that could not be read */
	ETRACE_COUNT_UNRESOLVED_PATHS, /* too long, or gone before they were looked at */
	ETRACE_COUNT_RACES, /* descriptor reused before it could be looked at */
	ETRACE_COUNT_NO_MEMORY, /* events cut or left out: no memory */
	ETRACE_COUNT_IO_URING, /* io_uring_setup by traced tasks */
	ETRACE_COUNT_PASSED_FDS, /* calls that may have received some: SCM_RIGHTS, pidfd_getfd */
	ETRACE_COUNT_NEW_MOUNT_API, /* fsopen, move_mount, ... */
	ETRACE_COUNT_FOREIGN_ROOT, /* tasks whose root directory is not init's: inside paths */
	ETRACE_COUNT_SUPPRESSED_OPENS, /* by OPEN_ONCE */
	ETRACE_COUNT_MISSED_PROBES, /* calls that a kprobe had no time for; known after STOP */
	ETRACE_COUNT_NOT_IN_MEMORY, /* paths whose names the kernel did not hold any more */
	ETRACE_COUNT_PRIVILEGED, /* executions that UNPRIVILEGED left out, with all that follows */
	ETRACE_N_COUNTERS,
};

#endif /* ETRACE_CONTROL_H */
