// SPDX-License-Identifier: Apache-2.0
/*
 * Two seccomp filters. The first lets calls that map code or open a file to read wait for the
 * supervisor (answer.c). The second denies what Landlock does not cover: rights, times and attributes of files, sockets, signals and
 * other processes, name spaces and parts of the kernel.
 *
 * Calls that this file does not know yet (numbers above LAST_KNOWN) do not exist for the program, as
 * on an older kernel: read what a new call does, then raise LAST_KNOWN. Facts of each call: the man
 * pages of section 2; numbers: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h.
 */
#include "sandbox/sandbox.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LAST_KNOWN 450 /* set_mempolicy_home_node, of Linux 5.17 */
#define MAX_INSTRUCTIONS 640
#define NEW_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | \
	 CLONE_NEWCGROUP)
/* an execve() that is not allowed: make prints its text, by which etrace knows it; nothing else
 * fails in this way */
#define NOT_EXECUTED EPROTO

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter does not know the calls of this machine"
#endif

/* Of these, newer architectures have successors only. */
#define NO_CALL (-1)
#ifndef SYS_chmod
#define SYS_chmod NO_CALL
#define SYS_chown NO_CALL
#define SYS_lchown NO_CALL
#define SYS_open NO_CALL
#define SYS_utime NO_CALL
#define SYS_utimes NO_CALL
#define SYS_futimesat NO_CALL
#define SYS_uselib NO_CALL
#define SYS_iopl NO_CALL
#define SYS_ioperm NO_CALL
#define SYS_modify_ldt NO_CALL
#define SYS__sysctl NO_CALL
#endif
/* Numbers that headers of Linux 5.10 lack are the same everywhere. */
enum {
	NEWER_MOUNT_SETATTR = 442,
	NEWER_QUOTACTL_FD = 443,
	NEWER_PROCESS_MRELEASE = 448,
	NEWER_PROCESS_MADVISE = 440,
};

static const int denied[] = {
	/* rights, owners, times, attributes and lengths of files */
	SYS_chmod, SYS_fchmod, SYS_fchmodat, SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat,
	SYS_utime, SYS_utimes, SYS_futimesat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr,
	SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_truncate, SYS_flock,
	SYS_acct, SYS_swapon, SYS_swapoff, SYS_quotactl, NEWER_QUOTACTL_FD,
	/* files by other ways than names */
	SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_fanotify_init, SYS_fanotify_mark,
	SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_io_setup,
	SYS_memfd_create, /* memory that no limit counts, and Landlock lets it be executed */
	/* sockets */
	SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
	/* other processes */
	SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal,
	 SYS_pidfd_open, SYS_pidfd_getfd, SYS_ptrace, SYS_process_vm_readv,
	SYS_process_vm_writev, NEWER_PROCESS_MADVISE, NEWER_PROCESS_MRELEASE, SYS_kcmp,
	SYS_setpriority, SYS_ioprio_set, SYS_sched_setscheduler, SYS_sched_setparam,
	SYS_sched_setattr, SYS_sched_setaffinity, SYS_migrate_pages, SYS_move_pages,
	/* what other processes share */
	SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl,
	SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink,
	SYS_mq_timedsend, SYS_mq_timedreceive, SYS_mq_notify, SYS_mq_getsetattr, SYS_keyctl,
	SYS_add_key, SYS_request_key,
	/* the machine */
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree,
	SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, NEWER_MOUNT_SETATTR, SYS_unshare,
	SYS_setns, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_init_module,
	SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_reboot,
	SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
	SYS_setdomainname, SYS_syslog, SYS_vhangup, SYS_iopl, SYS_ioperm, SYS_modify_ldt,
	SYS__sysctl,
	/* code by other ways than mmap() */
	SYS_uselib, SYS_personality, SYS_remap_file_pages, SYS_pkey_mprotect,
};

/* Harmless in a process namespace of its own. */
static const int signals[] = { SYS_kill, SYS_tkill, SYS_tgkill };

/* Their arguments are in memory, where no filter sees them; libc does without them. */
static const int unknown[] = { SYS_clone3, SYS_openat2 };

/* ioctl() that only ask, or concern one descriptor. */
static const uint32_t questions[] = {
	TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, (uint32_t)FS_IOC_GETFLAGS,
};

/* fcntl() by which others get signals, or wait. */
static const uint32_t far_reaching[] = {
	F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE, F_NOTIFY, F_SETLK, F_SETLKW, F_OFD_SETLK,
	F_OFD_SETLKW, F_SET_RW_HINT, F_SET_FILE_RW_HINT,
};

struct code {
	struct sock_filter instructions[MAX_INSTRUCTIONS];
	unsigned short len;
};

static void put(struct code *code, uint16_t what, uint32_t k, uint8_t if_true, uint8_t if_false)
{
	if (code->len == MAX_INSTRUCTIONS)
		give_up("missing", "the filter is too long");
	code->instructions[code->len++] = (struct sock_filter){ what, if_true, if_false, k };
}

static void put_load(struct code *code, size_t offset)
{
	put(code, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The low half: the kernel looks at no more of these. */
static void put_load_argument(struct code *code, unsigned int number)
{
	put_load(code, offsetof(struct seccomp_data, args) + number * sizeof(uint64_t));
}

static void put_return(struct code *code, uint32_t action)
{
	put(code, BPF_RET | BPF_K, action, 0, 0);
}

static uint32_t error(int number)
{
	return SECCOMP_RET_ERRNO | ((uint32_t)number & SECCOMP_RET_DATA);
}

static void put_call(struct code *code, int call, uint32_t action)
{
	if (call == NO_CALL)
		return;
	put(code, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
	put_return(code, action);
}

/* The instructions of one call follow: begin_call() .. end_call(), which allows it. */
static unsigned short begin_call(struct code *code, int call)
{
	put(code, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 1, 0);
	put(code, BPF_JMP | BPF_JA, 0, 0, 0);
	return code->len;
}

static void end_call(struct code *code, unsigned short begin)
{
	put_return(code, SECCOMP_RET_ALLOW);
	code->instructions[begin - 1].k = (uint32_t)(code->len - begin);
}

/* The call is denied when an argument has one of these values; with `is_list_allowed`, any other. */
static void put_values(struct code *code, int call, unsigned int argument, const uint32_t *values,
		       size_t n, bool is_list_allowed, int number)
{
	unsigned short begin = begin_call(code, call);
	size_t i;

	put_load_argument(code, argument);
	for (i = 0; i < n; i++) {
		put(code, BPF_JMP | BPF_JEQ | BPF_K, values[i], 0, 1);
		put_return(code, is_list_allowed ? SECCOMP_RET_ALLOW : error(number));
	}
	if (is_list_allowed)
		put_return(code, error(number));
	end_call(code, begin);
}

/* The call is denied when an argument has any of these bits. */
static void put_bits(struct code *code, int call, unsigned int argument, uint32_t bits, int number)
{
	unsigned short begin = begin_call(code, call);

	put_load_argument(code, argument);
	put(code, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
	put_return(code, error(number));
	end_call(code, begin);
}

/* A call that opens a file: the bits of `mask` of its flags are loaded. NO_CALL matches no call. */
static unsigned short begin_opening(struct code *code, int call, unsigned int argument, uint32_t mask)
{
	unsigned short begin = begin_call(code, call);

	put_load_argument(code, argument);
	put(code, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	return begin;
}

/*
 * A file that is truncated without being opened for writing: Landlock sees that only since version 3.
 * Access mode 3 (for ioctl alone) truncates as well.
 */
static void put_open(struct code *code, int call, unsigned int argument)
{
	unsigned short begin = begin_opening(code, call, argument, O_TRUNC | O_ACCMODE);

	put(code, BPF_JMP | BPF_JEQ | BPF_K, O_TRUNC | O_RDONLY, 0, 1);
	put_return(code, error(EACCES));
	put(code, BPF_ALU | BPF_AND | BPF_K, O_ACCMODE, 0, 0);
	put(code, BPF_JMP | BPF_JEQ | BPF_K, O_ACCMODE, 0, 1);
	put_return(code, error(EACCES));
	end_call(code, begin);
}

/* Two ends of a stream; a datagram of theirs could go to any other socket. */
static void put_pair(struct code *code)
{
	unsigned short begin = begin_call(code, SYS_socketpair);

	put_load_argument(code, 0);
	put(code, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0);
	put_return(code, error(EPERM));
	put_load_argument(code, 1);
	put(code, BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK), 0, 0);
	put(code, BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0);
	put_return(code, error(EPERM));
	end_call(code, begin);
}

/* fcntl() of several kinds: the far-reaching ones, and the flag by which a terminal sends signals. */
static void put_flags(struct code *code)
{
	unsigned short begin = begin_call(code, SYS_fcntl);
	size_t i;

	put_load_argument(code, 1);
	for (i = 0; i < sizeof(far_reaching) / sizeof(far_reaching[0]); i++) {
		put(code, BPF_JMP | BPF_JEQ | BPF_K, far_reaching[i], 0, 1);
		put_return(code, error(EPERM));
	}
	put(code, BPF_JMP | BPF_JEQ | BPF_K, F_SETFL, 0, 4);
	put_load_argument(code, 2);
	put(code, BPF_JMP | BPF_JSET | BPF_K, O_ASYNC, 0, 1);
	put_return(code, error(EPERM));
	put_return(code, SECCOMP_RET_ALLOW);
	end_call(code, begin);
}

/* Nothing is executed except the file that was checked, by its descriptor, which the program lacks. */
static void put_execution(struct code *code, int program)
{
	unsigned short begin = begin_call(code, SYS_execveat);

	put_load_argument(code, 4);
	put(code, BPF_JMP | BPF_JEQ | BPF_K, AT_EMPTY_PATH, 1, 0);
	put_return(code, error(NOT_EXECUTED));
	put_load_argument(code, 0);
	put(code, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)program, 1, 0);
	put_return(code, error(NOT_EXECUTED));
	end_call(code, begin);
	put_call(code, SYS_execve, error(NOT_EXECUTED));
}

static void put_architecture(struct code *code, uint32_t otherwise)
{
	put_load(code, offsetof(struct seccomp_data, arch));
	put(code, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0);
	put_return(code, otherwise);
	put_load(code, offsetof(struct seccomp_data, nr));
}

static long install(struct code *code, unsigned int flags)
{
	struct sock_fprog program = { code->len, code->instructions };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Whatever is opened to be read only: the program gets the file that the supervisor looked at. */
static void put_reading(struct code *code, int call, unsigned int argument)
{
	unsigned short begin = begin_opening(code, call, argument, O_ACCMODE);

	put(code, BPF_JMP | BPF_JEQ | BPF_K, O_RDONLY, 0, 1);
	put_return(code, SECCOMP_RET_USER_NOTIF);
	end_call(code, begin);
}

int filter_ask(const struct sandbox *box)
{
	struct code code = { .len = 0 };
	unsigned short begin;
	long listener;

	put_architecture(&code, SECCOMP_RET_ALLOW);
	begin = begin_call(&code, SYS_mmap);
	put_load_argument(&code, 2);
	put(&code, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
	put_return(&code, SECCOMP_RET_USER_NOTIF);
	end_call(&code, begin);
	put_reading(&code, SYS_open, 1);
	put_reading(&code, SYS_openat, 2);
	put_call(&code, SYS_getcwd, SECCOMP_RET_USER_NOTIF);
	if (box->may == MAY_ALL)
		put_call(&code, SYS_execve, SECCOMP_RET_USER_NOTIF);
	put_return(&code, SECCOMP_RET_ALLOW);
	listener = install(&code, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (listener < 0)
		give_up("missing", "seccomp with a listener: %s", errno == EBUSY ?
			"a sandbox around this one has it" : strerror(errno));
	return (int)listener;
}

void filter_deny(const struct sandbox *box)
{
	struct code code = { .len = 0 };
	size_t i;

	put_architecture(&code, SECCOMP_RET_KILL_PROCESS);
	put(&code, BPF_JMP | BPF_JGT | BPF_K, LAST_KNOWN, 0, 1);
	put_return(&code, error(ENOSYS)); /* those of x32, too */
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		put_call(&code, unknown[i], error(ENOSYS));
	for (i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		put_call(&code, denied[i], error(EPERM));
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]) && !box->has_namespaces; i++)
		put_call(&code, signals[i], error(EPERM));
	put_open(&code, SYS_open, 1);
	put_open(&code, SYS_openat, 2);
	put_bits(&code, SYS_clone, 0, NEW_NAMESPACES, EPERM);
	put_pair(&code);
	put_flags(&code);
	put_values(&code, SYS_prctl, 0, (const uint32_t[]){ PR_SET_PDEATHSIG }, 1, false, EPERM);
	put_values(&code, SYS_prlimit64, 0, (const uint32_t[]){ 0 }, 1, true, EPERM);
	put_values(&code, SYS_ioctl, 1, questions, sizeof(questions) / sizeof(uint32_t), true,
		   ENOTTY);
	if (box->may == MAY_NOTHING)
		put_execution(&code, box->program);
	if (box->may != MAY_ALL)
		put_bits(&code, SYS_mprotect, 2, PROT_EXEC, EACCES);
	put_return(&code, SECCOMP_RET_ALLOW);
	if (install(&code, 0) < 0)
		give_up("missing", "seccomp: %s", strerror(errno));
}
