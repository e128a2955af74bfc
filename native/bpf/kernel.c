// SPDX-License-Identifier: Apache-2.0
/*
 * The programs of kernel/capture.bpf.c. They are held by descriptors of this process: whatever ends it,
 * nothing is left in the kernel.
 */
#include "bpf/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "capture/program.h"
#include "capture/rlimits.h"

#include "capture.skel.h"

#include "bpf/calls.h"
#include "bpf/slot.h"

#define LOG_STATS 4 /* of the verifier: what it has processed */
#define NO_CALL (-1)

struct call_row {
	enum call_kind kind;
	int numbers[5];
};

#define CALL_NUMBERS
#include "bpf/calls.h"

#if defined(__x86_64__)
enum { NATIVE = 0, X32 = 1, COMPAT = 2 };
#elif defined(__aarch64__)
enum { NATIVE = 3, X32 = 3, COMPAT = 4 };
#else
#error "this architecture is not known"
#endif

static struct capture *programs;
static struct ring_buffer *ring;
static void (*receiver)(const struct record *record, const char *text, size_t n);
static char last_message[512]; /* the first that libbpf had to say */

static int note_message(enum libbpf_print_level level, const char *format, va_list args)
{
	size_t len = strlen(last_message);

	if (secure_getenv("ETRACE_BPF_DEBUG"))
		vfprintf(stderr, format, args);
	else if (level == LIBBPF_WARN && len < sizeof(last_message) - 1)
		vsnprintf(last_message + len, sizeof(last_message) - len, format, args);
	return 0;
}

static void set_kind(size_t table, int number, enum call_kind kind)
{
	if (number != NO_CALL && number < N_CALL_NUMBERS)
		programs->rodata->call_kinds[table * N_CALL_NUMBERS + (size_t)number] = (unsigned char)kind;
}

/* The kernel takes a power of two, of whole pages, below 2 GB. */
#define LEAST_BUFFER (1u << 18)
#define LARGEST_BUFFER (1u << 30)
#define LARGEST_WITHOUT_ROOT (64u << 20)
#define MOST_WAKE (1u << 20)

#define NEEDED_FILES 64
#define NEEDED_MEMORY (32u << 20) /* beside the buffer, which is mapped twice */

static unsigned int buffer_bytes(void)
{
	unsigned long long wanted = (unsigned long long)options.buffer_kib * 1024;
	unsigned int largest = getuid() == 0 ? LARGEST_BUFFER : LARGEST_WITHOUT_ROOT;
	unsigned int bytes = LEAST_BUFFER;

	while (bytes < wanted && bytes < largest)
		bytes *= 2;
	if (bytes < wanted && getuid() != 0)
		say("--buffer-size: %u KiB is the most without root", bytes / 1024);
	return bytes;
}

/* ---- programs of which there are variants ---- */

#define PREEMPTED_SINCE 7 /* of Linux; see PROGRAMS in capture.bpf.c */

struct variants {
	struct bpf_program *plain, *held, *again;
	bool is_wanted;
};

#define VARIANTS(name, is_wanted) \
	{ programs->progs.name, programs->progs.name##_held, programs->progs.name##_again, is_wanted }
#define ALL_VARIANTS                                                                                           \
	{ VARIANTS(at_call, true), VARIANTS(after_call, true), VARIANTS(at_fork, true), VARIANTS(at_exec, true), \
	  VARIANTS(at_exit, true), VARIANTS(at_rename, options.thread_names) }
#define N_VARIANTS 6

static bool can_be_preempted(void)
{
	struct utsname system;

	return uname(&system) == 0 && atoi(system.release) >= PREEMPTED_SINCE;
}

static void choose_variants(void)
{
	const struct variants rows[N_VARIANTS] = ALL_VARIANTS;
	bool preempted = can_be_preempted();
	size_t i;

	for (i = 0; i < N_VARIANTS; i++) {
		bpf_program__set_autoload(rows[i].plain, rows[i].is_wanted && !preempted);
		bpf_program__set_autoload(rows[i].held, rows[i].is_wanted && preempted);
		bpf_program__set_autoload(rows[i].again, rows[i].is_wanted && preempted);
	}
}

/* How often the kernel left a program out. */
static u64 misses_of(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	unsigned int n_bytes = sizeof(info);

	if (bpf_program__fd(program) < 0 || bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &n_bytes) < 0)
		return 0;
	return info.recursion_misses;
}

/* ---- loading ---- */

/* The number of a control group is that of its directory; its level, how far that is below the mount. */
static void set_cgroup(const char *directory)
{
	int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statfs kind;
	struct stat st;
	dev_t device;
	int level = -1;

	if (fd < 0 || fstatfs(fd, &kind) < 0 || kind.f_type != CGROUP2_SUPER_MAGIC || fstat(fd, &st) < 0)
		die("'%s' is not the directory of a control group, version 2", directory);
	programs->rodata->cgroup = st.st_ino;
	device = st.st_dev;
	for (; st.st_dev == device; level++) {
		int above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		close(fd);
		fd = above;
		if (fd < 0 || fstat(fd, &st) < 0)
			die("'%s': %s", directory, strerror(errno));
	}
	close(fd);
	programs->rodata->cgroup_level = (unsigned int)level;
}

static void set_options(void)
{
	unsigned int bytes = buffer_bytes();
	size_t i;

	for (i = 0; i < sizeof(call_rows) / sizeof(call_rows[0]); i++) {
		set_kind(0, call_rows[i].numbers[NATIVE], call_rows[i].kind);
		set_kind(0, call_rows[i].numbers[X32], call_rows[i].kind);
		set_kind(1, call_rows[i].numbers[COMPAT], call_rows[i].kind);
	}
	programs->rodata->wants_environment = options.environment;
	programs->rodata->wants_mounts = options.mounts;
	programs->rodata->wants_stderr = options.keeps_stderr;
	programs->rodata->wants_stdout = options.keeps_stdout;
	programs->rodata->wants_usage = options.usage;
	programs->rodata->wants_writes = options.keeps_stderr || options.keeps_stdout;
	programs->rodata->adopts = options_follow();
	if (options.cgroup)
		set_cgroup(options.cgroup);
	programs->rodata->is_limited = getuid() != 0;
	programs->rodata->owner_uid = getuid();
	programs->rodata->wake_bytes = bytes / 4 < MOST_WAKE ? bytes / 4 : MOST_WAKE;
	programs->rodata->page_bytes = (unsigned int)sysconf(_SC_PAGESIZE);
	bpf_map__set_max_entries(programs->maps.ring, bytes);
	bpf_program__set_autoload(programs->progs.at_switch, options.usage);
	choose_variants();
}

static int take(void *context, void *data, size_t size)
{
	const struct record *record = data;

	(void)context;
	if (size >= sizeof(*record))
		receiver(record, (const char *)(record + 1), size - sizeof(*record));
	return 0;
}

/* 0, or what is wrong. */
static int load(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, how, .kernel_log_level = secure_getenv("ETRACE_BPF_DEBUG") ? LOG_STATS : 0);

	libbpf_set_print(note_message);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	programs = capture__open_opts(&how);
	if (!programs)
		return errno;
	set_options();
	return -capture__load(programs);
}

static const char *reason(int error)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return "the kernel has no type information (CONFIG_DEBUG_INFO_BTF)";
	if (error == EPERM || error == EACCES)
		return geteuid() ? "it takes root, or CAP_BPF and CAP_PERFMON" :
				   "the kernel refuses them (lockdown, or a container without CAP_BPF and "
				   "CAP_PERFMON)";
	if (error == EINVAL || error == ENOTSUP || error == ENOSYS || error == E2BIG)
		return "the kernel refuses them (Linux 5.10 is needed; ETRACE_BPF_DEBUG=1 shows its reasons)";
	return strerror(error);
}

const char *kernel_start(void)
{
	const char *refusal = limits_lack(RLIMIT_NOFILE, NEEDED_FILES);
	int error;

	if (!refusal)
		refusal = limits_lack(RLIMIT_AS, NEEDED_MEMORY + 2048 * (rlim_t)options.buffer_kib);
	if (!refusal)
		refusal = slot_take();
	if (refusal)
		return refusal;
	error = load();
	if (!error)
		error = -capture__attach(programs);
	if (error) {
		capture__destroy(programs);
		programs = NULL;
		return reason(error);
	}
	ring = ring_buffer__new(bpf_map__fd(programs->maps.ring), take, NULL, NULL);
	return ring ? NULL : strerror(errno);
}

void kernel_take_next_child(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0)
		die("/proc is missing: mount it (mount -t proc proc /proc) and try again");
	programs->bss->owner_namespace = (unsigned int)st.st_ino;
	programs->bss->owner = (unsigned int)getpid();
}

/* Whether a link of /proc/PID leads where that of this process does. */
static bool is_alike(pid_t pid, const char *link)
{
	struct stat own, other;
	char name[PROC_NAME_MAX], own_name[PROC_NAME_MAX];

	proc_name(name, pid, link);
	proc_name(own_name, getpid(), link);
	return stat(name, &other) == 0 && stat(own_name, &own) == 0 && own.st_ino == other.st_ino &&
	       own.st_dev == other.st_dev;
}

static unsigned int n_threads(pid_t pid)
{
	char name[PROC_NAME_MAX];
	struct stat st;

	proc_name(name, pid, "task");
	return stat(name, &st) < 0 ? 0 : (unsigned int)st.st_nlink - 2;
}

void kernel_take_process(pid_t pid)
{
	unsigned int n = n_threads(pid);

	if (!n)
		die("there is no process %d", (int)pid);
	if (!is_alike(pid, "ns/pid") || !is_alike(pid, "ns/mnt") || !is_alike(pid, "root"))
		die("process %d is in another container: trace it from there", (int)pid);
	kernel_take_next_child();
	programs->bss->n_to_adopt = n;
	programs->bss->owner = (unsigned int)pid;
}

void kernel_take_cgroup(void)
{
	kernel_take_next_child(); /* this process: by which numbers of processes and names of files go */
	programs->bss->n_to_adopt = 1;
}

void kernel_take_no_child(void)
{
	programs->bss->owner = 0;
}

int kernel_fd(void)
{
	return ring_buffer__epoll_fd(ring);
}

void kernel_drain(void (*receive)(const struct record *record, const char *text, size_t n))
{
	receiver = receive;
	ring_buffer__consume(ring);
}

void kernel_stop(void)
{
	capture__detach(programs);
}

static u64 count_of(enum loss loss)
{
	int n = libbpf_num_possible_cpus();
	u64 counts[n > 0 ? n : 1];
	unsigned int key = loss;
	u64 sum = 0;
	int i;

	if (bpf_map_lookup_elem(bpf_map__fd(programs->maps.losses), &key, counts) < 0)
		return 0;
	for (i = 0; i < n; i++)
		sum += counts[i];
	return sum;
}

u64 kernel_lost_records(void)
{
	return count_of(LOSS_RING_FULL);
}

/* What the program that comes again missed, too, it finds at the next event. */
u64 kernel_missed_records(void)
{
	const struct variants rows[N_VARIANTS] = ALL_VARIANTS;
	u64 sum = count_of(LOSS_MISSED);
	size_t i;

	for (i = 0; i < N_VARIANTS; i++)
		sum += misses_of(rows[i].plain);
	return sum;
}

u64 kernel_lost_tasks(void)
{
	return count_of(LOSS_TASKS_FULL);
}
