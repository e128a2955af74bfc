// SPDX-License-Identifier: Apache-2.0
/*
 * Tries to change something, to run something or to reach somebody, and prints the name of each
 * attempt that succeeded: attempts DIRECTORY PID. DIRECTORY holds `file` and `folder`, PID is another
 * process of the same user. Outside of the sandbox nearly all succeed (the control of the tests),
 * inside none may. Attempts that change a file restore nothing: the tests look at it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static pid_t other;
static const char file[] = "file";

#define ATTEMPT(name) static long name(void)
#define CALL(name, ...) ATTEMPT(name) { return (long)(__VA_ARGS__); }

static int reading(void)
{
	return open(file, O_RDONLY | O_CLOEXEC);
}

/* ---- rights, owners, times, attributes ---- */
CALL(chmod_, chmod(file, 0666))
CALL(fchmod_, fchmod(reading(), 0666))
CALL(fchmodat_, fchmodat(AT_FDCWD, file, 0666, 0))
CALL(fchmodat2_, syscall(452, AT_FDCWD, file, 0666, 0))
CALL(chown_, chown(file, geteuid(), getegid()))
CALL(fchown_, fchown(reading(), geteuid(), getegid()))
CALL(lchown_, lchown(file, geteuid(), getegid()))
CALL(fchownat_, fchownat(AT_FDCWD, file, geteuid(), getegid(), 0))
CALL(utime_, utime(file, NULL))
CALL(utimes_, utimes(file, NULL))
CALL(utimensat_, utimensat(AT_FDCWD, file, NULL, 0))
CALL(futimens_, futimens(reading(), NULL))
CALL(setxattr_, setxattr(file, "user.a", "b", 1, 0))
CALL(lsetxattr_, lsetxattr(file, "user.b", "b", 1, 0))
CALL(fsetxattr_, fsetxattr(reading(), "user.c", "b", 1, 0))
CALL(removexattr_, removexattr(file, "user.own"))
ATTEMPT(setxattrat_)
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} args = { (uintptr_t) "b", 1, 0 };

	return syscall(463, AT_FDCWD, file, 0, "user.d", &args, sizeof(args));
}
ATTEMPT(inode_flags)
{
	int flags = 0, fd = reading();

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -1;
	flags ^= FS_NODUMP_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}
ATTEMPT(inode_attributes)
{
	struct fsxattr attributes;
	int fd = reading();

	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return -1;
	attributes.fsx_xflags ^= FS_XFLAG_NODUMP;
	return ioctl(fd, FS_IOC_FSSETXATTR, &attributes);
}

/* ---- content and names ---- */
CALL(truncate_, truncate(file, 3))
CALL(open_to_write, open(file, O_WRONLY))
CALL(open_to_append, open(file, O_WRONLY | O_APPEND))
CALL(open_and_truncate, open(file, O_RDONLY | O_TRUNC))
CALL(open_for_nothing_and_truncate, open(file, 3 | O_TRUNC))
ATTEMPT(openat2_and_truncate)
{
	uint64_t how[3] = { O_RDONLY | O_TRUNC, 0, 0 };

	return syscall(437, AT_FDCWD, file, how, sizeof(how));
}
CALL(creat_, creat("new", 0600))
CALL(mkdir_, mkdir("new-folder", 0700))
CALL(rmdir_, rmdir("folder"))
CALL(unlink_, unlink("gone"))
CALL(rename_, rename("renamed", "renamed-2"))
CALL(exchange, renameat2(AT_FDCWD, "left", AT_FDCWD, "right", RENAME_EXCHANGE))
CALL(link_, link(file, "link"))
CALL(symlink_, symlink(file, "symlink"))
CALL(mkfifo_, mkfifo("fifo", 0600))
CALL(mknod_, mknod("node", S_IFREG | 0600, 0))
CALL(no_name, open(".", O_TMPFILE | O_RDWR, 0600))
CALL(flock_, flock(reading(), LOCK_EX | LOCK_NB))
ATTEMPT(lock)
{
	struct flock lock = { .l_type = F_RDLCK };

	return fcntl(reading(), F_SETLK, &lock);
}
CALL(signals_of_terminal, fcntl(reading(), F_SETFL, O_ASYNC))
CALL(uncounted_memory, memfd_create("x", 0))
CALL(asynchronous, syscall(SYS_io_setup, 1, &(aio_context_t){ 0 }))
CALL(lease, fcntl(reading(), F_SETLEASE, F_RDLCK))
CALL(notify, fcntl(open(".", O_RDONLY), F_NOTIFY, DN_CREATE))
ATTEMPT(handle)
{
	struct {
		struct file_handle head;
		char rest[128];
	} handle = { .head.handle_bytes = 128 };
	int mount;

	return name_to_handle_at(AT_FDCWD, file, &handle.head, &mount, 0);
}
CALL(fanotify, fanotify_init(FAN_REPORT_FID, O_RDONLY))
CALL(io_uring, syscall(425, 4, (char[256]){ 0 }))

/* ---- other processes ---- */
CALL(kill_, kill(other, SIGWINCH))
CALL(tkill_, syscall(SYS_tkill, other, SIGWINCH))
CALL(tgkill_, syscall(SYS_tgkill, other, other, SIGWINCH))
ATTEMPT(sigqueue_)
{
	union sigval value = { 0 };

	return sigqueue(other, SIGWINCH, value);
}
CALL(pidfd_signal, syscall(424, syscall(434, other, 0), SIGWINCH, NULL, 0))
ATTEMPT(signal_by_owner)
{
	return fcntl(reading(), F_SETOWN, other);
}
ATTEMPT(ptrace_)
{
	if (ptrace(PTRACE_ATTACH, other, 0, 0) < 0)
		return -1;
	waitpid(other, NULL, __WALL);
	return ptrace(PTRACE_DETACH, other, 0, 0);
}
ATTEMPT(read_memory)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", other);
	return open(path, O_RDWR);
}
ATTEMPT(kill_first)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", other);
	return open(path, O_WRONLY);
}
ATTEMPT(limits_of_other)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_CORE, &limit) < 0 ? -1 : prlimit(other, RLIMIT_CORE, &limit, NULL);
}
CALL(priority_of_other, setpriority(PRIO_PROCESS, (id_t)other, 19))
ATTEMPT(affinity_of_other)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? -1 :
	       sched_setaffinity(other, sizeof(set), &set);
}
CALL(scheduler_of_other, sched_setscheduler(other, SCHED_BATCH, &(struct sched_param){ 0 }))
CALL(io_priority_of_other, syscall(SYS_ioprio_set, 1, other, (2 << 13) | 7))
CALL(kcmp_, syscall(SYS_kcmp, getpid(), other, 0, 0, 0))

/* ---- what processes share ---- */
ATTEMPT(shared_memory)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return id;
}
ATTEMPT(semaphores)
{
	int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

	if (id >= 0)
		semctl(id, 0, IPC_RMID);
	return id;
}
ATTEMPT(messages)
{
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	if (id >= 0)
		msgctl(id, IPC_RMID, NULL);
	return id;
}
ATTEMPT(queue)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/etrace-attempt-%d", getpid());
	fd = mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
	mq_unlink(name);
	return fd;
}
CALL(key, syscall(SYS_add_key, "user", "etrace-attempt", "x", 1, KEY_SPEC_PROCESS_KEYRING))
CALL(keyring, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1))

/* ---- sockets ---- */
CALL(internet_socket, socket(AF_INET, SOCK_STREAM, 0))
CALL(datagram_socket, socket(AF_INET6, SOCK_DGRAM, 0))
CALL(netlink_socket, socket(AF_NETLINK, SOCK_RAW, 0))
CALL(unix_socket, socket(AF_UNIX, SOCK_STREAM, 0))
ATTEMPT(datagram)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "inbox" };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0)
		return -1;
	return sendto(ends[0], "x", 1, 0, (struct sockaddr *)&address, sizeof(address));
}
ATTEMPT(connected)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return connect(fd, (struct sockaddr *)&address, sizeof(address));
}

/* ---- the machine ---- */
static long succeeded_in_child(long (*call)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(call() < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0 ? 0 : -1;
}
CALL(unshares, unshare(CLONE_NEWUSER))
ATTEMPT(mounts)
{
	return mount("x", "folder", "tmpfs", 0, NULL) < 0 ? -1 : umount("folder");
}
CALL(chroots, chroot("."))
ATTEMPT(user_namespace)
{
	return succeeded_in_child(unshares);
}
ATTEMPT(mount_)
{
	return succeeded_in_child(mounts);
}
ATTEMPT(chroot_)
{
	return succeeded_in_child(chroots);
}
CALL(log_, syscall(SYS_syslog, 10, NULL, 0))
CALL(bpf_, syscall(SYS_bpf, 0, (uint32_t[16]){ 1, 4, 4, 1 }, 64))
ATTEMPT(perf)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
					.config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1 };

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}
CALL(userfaultfd_, syscall(SYS_userfaultfd, 1 | O_CLOEXEC))
CALL(personality_, personality(ADDR_NO_RANDOMIZE))
CALL(terminal, open("/dev/tty", O_RDWR))
CALL(other_terminal, open("/dev/ptmx", O_RDONLY | O_NOCTTY))

/* ---- code ---- */
CALL(execute, execl("/bin/true", "true", NULL))
ATTEMPT(run_true)
{
	return succeeded_in_child(execute);
}
CALL(run_shell, system("true") == 0 ? 0 : -1)
ATTEMPT(executes_memory)
{
	int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("x", 0);
	char *words[] = { "attempts", NULL };

	while (sendfile(to, from, NULL, 1 << 20) > 0)
		;
	return syscall(SYS_execveat, to, "", words, words + 1, AT_EMPTY_PATH);
}
ATTEMPT(run_memory)
{
	return succeeded_in_child(executes_memory);
}
CALL(map_new_code, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
CALL(map_own_code, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, reading(), 0))
ATTEMPT(make_code)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}
#if defined(__x86_64__)
static long old_call(void)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory"); /* getpid of i386 */
	return result;
}
ATTEMPT(call_of_i386)
{
	return succeeded_in_child(old_call);
}
CALL(call_of_x32, syscall(0x40000000 + SYS_getppid))
#endif

#define ROW(name) { #name, name }
static const struct {
	const char *name;
	long (*call)(void);
} attempts[] = {
	ROW(chmod_), ROW(fchmod_), ROW(fchmodat_), ROW(fchmodat2_), ROW(chown_), ROW(fchown_),
	ROW(lchown_), ROW(fchownat_), ROW(utime_), ROW(utimes_), ROW(utimensat_), ROW(futimens_),
	ROW(setxattr_), ROW(lsetxattr_), ROW(fsetxattr_), ROW(removexattr_), ROW(setxattrat_),
	ROW(inode_flags), ROW(inode_attributes), ROW(truncate_), ROW(open_to_write),
	ROW(open_to_append), ROW(open_and_truncate), ROW(open_for_nothing_and_truncate), ROW(openat2_and_truncate), ROW(creat_),
	ROW(mkdir_), ROW(rmdir_), ROW(unlink_), ROW(rename_), ROW(exchange), ROW(link_),
	ROW(symlink_), ROW(mkfifo_), ROW(mknod_), ROW(no_name), ROW(flock_), ROW(lock), ROW(signals_of_terminal),
	ROW(uncounted_memory), ROW(asynchronous), ROW(lease), ROW(notify),
	ROW(handle), ROW(fanotify), ROW(io_uring), ROW(kill_), ROW(tkill_), ROW(tgkill_),
	ROW(sigqueue_), ROW(pidfd_signal), ROW(signal_by_owner), ROW(ptrace_), ROW(read_memory),
	ROW(kill_first), ROW(limits_of_other), ROW(priority_of_other), ROW(affinity_of_other),
	ROW(scheduler_of_other), ROW(io_priority_of_other), ROW(kcmp_), ROW(shared_memory),
	ROW(semaphores), ROW(messages), ROW(queue), ROW(key), ROW(keyring), ROW(internet_socket),
	ROW(datagram_socket), ROW(netlink_socket), ROW(unix_socket), ROW(datagram), ROW(connected),
	ROW(user_namespace), ROW(mount_), ROW(chroot_), ROW(log_), ROW(bpf_), ROW(perf),
	ROW(userfaultfd_), ROW(personality_), ROW(terminal), ROW(other_terminal), ROW(run_true), ROW(run_shell),
	ROW(run_memory), ROW(map_new_code), ROW(map_own_code), ROW(make_code),
#if defined(__x86_64__)
	ROW(call_of_i386), ROW(call_of_x32),
#endif
};

int main(int n, char **words)
{
	size_t i;

	if (n < 3)
		return 0; /* what run_memory executes */
	other = atoi(words[2]);
	if (chdir(words[1]) < 0)
		return 1;
	for (i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		if (attempts[i].call() >= 0) {
			printf("%s\n", attempts[i].name);
			fflush(stdout);
		}
	printf("end\n");
	return 0;
}
