// SPDX-License-Identifier: Apache-2.0
/*
 * The ftrace instance: where it is, its per-CPU files, its counters. Everything below it is opened
 * relative to one directory, which stays open.
 */
#include "instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collect.h"
#include "layout.h"

#define SMALL_FILE_MAX 4096
#define DEFAULT_BUFFER_BYTES (1408u << 10) /* of ftrace */

static const char *const mounts[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

static struct {
	int fd;
	char name[PATH_MAX];
} instance = { .fd = -1 };

const char *instance_name(void)
{
	return instance.name;
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static const char *find_tracefs(void)
{
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		snprintf(path, sizeof(path), "%s/instances", mounts[i]);
		if (access(path, F_OK) == 0)
			return mounts[i];
		if (errno == EACCES)
			die("only root may read '%s': sudo etrace_cat", mounts[i]);
	}
	die("no tracefs at %s: mount it (mount -t tracefs nodev %s), or name it with --tracefs DIR",
	    mounts[0], mounts[0]);
}

static void explain_failed_open(int error)
{
	if (error == EACCES || error == EPERM)
		die("only root may read '%s': sudo etrace_cat", instance.name);
	if (error == ENOENT && !options.raw)
		die("there is no ftrace instance '%s': 'etrace start' makes it; another one is "
		    "named with --instance", instance.name);
	die("cannot open '%s': %s", instance.name, strerror(error));
}

/*
 * The module writes CLOCK_MONOTONIC of the machine: with another one here events would go out too
 * early or hours late. What the file says is our clock: exec moves us into the namespace it is of.
 */
static void refuse_time_namespace(void)
{
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	long long sec, nsec;

	if (!file)
		return; /* a kernel without time namespaces */
	if (fscanf(file, "monotonic %lld %lld", &sec, &nsec) == 2 && (sec || nsec))
		die("this time namespace shifts CLOCK_MONOTONIC by %lld s, the kernel module does "
		    "not: run etrace_cat outside (nsenter --time=/proc/1/ns/time etrace_cat)", sec);
	fclose(file);
}

void instance_open(struct page_layout *layout)
{
	if (!options.raw)
		refuse_time_namespace();
	if (options.raw)
		snprintf(instance.name, sizeof(instance.name), "%s", options.raw);
	else
		snprintf(instance.name, sizeof(instance.name), "%s/instances/%s",
			 options.tracefs ? options.tracefs : find_tracefs(), options.instance);
	instance.fd = open_dir(instance.name);
	if (instance.fd < 0)
		explain_failed_open(errno);
	layout_read(layout, instance.fd, instance.name);
}

/* A small file of the instance as text; false when there is none. */
static bool read_small(const char *path, char text[SMALL_FILE_MAX])
{
	int fd = openat(instance.fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, text, SMALL_FILE_MAX - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static u64 number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

bool instance_dropped(const struct cpu_buffer *buffer, u64 *n)
{
	char text[SMALL_FILE_MAX];
	ssize_t len;

	if (buffer->stats_fd < 0)
		return false;
	len = pread(buffer->stats_fd, text, sizeof(text) - 1, 0);
	if (len <= 0)
		return false;
	text[len] = '\0';
	*n = number_after(text, "dropped events:");
	return true;
}

unsigned int instance_wake_percent(void)
{
	char text[SMALL_FILE_MAX];

	return read_small("buffer_percent", text) ? (unsigned int)strtoul(text, NULL, 10) : 0;
}

/* "1408", or "7 (expanded: 1408)" before the first event is enabled. */
static u64 buffer_bytes(u32 cpu)
{
	char path[64], text[SMALL_FILE_MAX];
	u64 kib;

	snprintf(path, sizeof(path), "per_cpu/cpu%u/buffer_size_kb", cpu);
	if (!read_small(path, text))
		return DEFAULT_BUFFER_BYTES;
	kib = number_after(text, "expanded:");
	if (!kib)
		kib = strtoull(text, NULL, 10);
	return kib << 10;
}

static int open_buffer(u32 cpu)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", cpu);
	fd = openat(instance.fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 && errno == EBUSY)
		die("another program reads '%s/%s' already: end it first", instance.name, path);
	if (fd < 0)
		die("cannot open '%s/%s': %s%s", instance.name, path, strerror(errno),
		    errno == EMFILE ? " (raise the limit: ulimit -n)" : "");
	return fd;
}

/* What it says is made anew for each read. */
static int open_stats(u32 cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	return openat(instance.fd, path, O_RDONLY | O_CLOEXEC);
}

/* Two readers would share the records out between them. */
static void lock_buffers(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		die("another etrace_cat reads '%s' already: end it first", instance.name);
}

/* Two files for each possible CPU may be more than the usual limit of 1024. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int by_number(const void *a, const void *b)
{
	u32 one = ((const struct cpu_buffer *)a)->number;
	u32 other = ((const struct cpu_buffer *)b)->number;

	return (one > other) - (one < other);
}

static size_t list_cpus(DIR *dir, struct cpu_buffer **buffers)
{
	struct cpu_buffer *list = NULL;
	struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(dir))) {
		u32 number;
		char rest;

		if (sscanf(entry->d_name, "cpu%u%c", &number, &rest) != 1)
			continue;
		list = must_realloc(list, (n + 1) * sizeof(*list));
		list[n++] = (struct cpu_buffer){ .fd = -1, .number = number };
	}
	if (n)
		qsort(list, n, sizeof(*list), by_number);
	*buffers = list;
	return n;
}

size_t instance_open_buffers(struct cpu_buffer **buffers)
{
	int fd = openat(instance.fd, "per_cpu", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t n, i;

	if (!dir)
		die("cannot open '%s/per_cpu': %s", instance.name, strerror(errno));
	n = list_cpus(dir, buffers);
	closedir(dir);
	if (!n)
		die("'%s/per_cpu' has no cpuN: not an ftrace instance", instance.name);
	allow_many_files();
	for (i = 0; i < n; i++) {
		(*buffers)[i].fd = open_buffer((*buffers)[i].number);
		(*buffers)[i].stats_fd = open_stats((*buffers)[i].number);
		(*buffers)[i].bytes = buffer_bytes((*buffers)[i].number);
	}
	lock_buffers((*buffers)[0].fd);
	return n;
}
