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
#include "page.h"

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

/*
 * ---- the layout of pages and records ----
 *
 * From `events/header_page`, `events/header_event`, and the `id` and `format` of the trace event. It
 * is read, not assumed: it differs between kernels (page size, sub-buffers since Linux 6.8) and the
 * module may get fields.
 */

#define EVENT_DIR "events/etrace/etrace_record/"
#define TEXT_MAX 16384
#define PAGE_BYTES_MAX (16u << 20)

struct text {
	const char *file;
	char bytes[TEXT_MAX];
};

static void explain_missing(const struct text *text, int error)
{
	if (error == ENOENT && !strncmp(text->file, EVENT_DIR, strlen(EVENT_DIR)))
		die("'%s' has no trace event etrace_record: load the kernel module (modprobe "
		    "etrace), or for --raw save %s as well", instance.name, text->file);
	die("cannot read '%s/%s': %s", instance.name, text->file, strerror(error));
}

static void read_text(struct text *text)
{
	int fd = openat(instance.fd, text->file, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		explain_missing(text, errno);
	while (len < TEXT_MAX - 1 && (n = read(fd, text->bytes + len, TEXT_MAX - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		explain_missing(text, errno);
	text->bytes[len] = '\0';
	close(fd);
}

static void refuse(const struct text *text, const char *what) __attribute__((noreturn));

static void refuse(const struct text *text, const char *what)
{
	die("'%s/%s' does not give %s: this etrace_cat does not know this kernel's ring buffer " 
	    "format; read trace_pipe instead (etrace_cat %s/trace_pipe)", instance.name,
	    text->file, what, instance.name);
}

/* The number after `key` on a line that begins with it; refuse() without. */
static unsigned long number_at(const struct text *text, const char *key)
{
	const char *at = text->bytes;
	size_t len = strlen(key);

	for (; at; at = strchr(at, '\n')) {
		at += strspn(at, "\n\t ");
		if (!strncmp(at, key, len)) {
			at += len;
			at += strcspn(at, "0123456789\n");
			if (*at >= '0' && *at <= '9')
				return strtoul(at, NULL, 10);
		}
	}
	refuse(text, key);
}

static void check_entries(void)
{
	static const struct {
		const char *key;
		unsigned long value;
	} expected[] = {
		{ "type_len", 5 },	{ "time_delta", 27 }, { "array", 32 },
		{ "padding", 29 },	{ "time_extend", 30 }, { "time_stamp", 31 },
		{ "data max type_len", 28 },
	};
	struct text text = { .file = "events/header_event" };
	size_t i;

	read_text(&text);
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		if (number_at(&text, expected[i].key) != expected[i].value)
			refuse(&text, expected[i].key);
}

/* `field:TYPE NAME;	offset:N;	size:N;`, NAME perhaps with brackets. */
static struct field field_at(const struct text *text, const char *name)
{
	struct field field;
	const char *at = text->bytes;
	size_t len = strlen(name);

	while ((at = strstr(at, "field:"))) {
		const char *end = strchr(at, ';');

		if (!end)
			break;
		if ((size_t)(end - at) > len && !memcmp(end - len, name, len) &&
		    end[-(ptrdiff_t)len - 1] == ' ' &&
		    sscanf(end, "; offset:%u; size:%u;", &field.offset, &field.bytes) == 2)
			return field;
		at = end;
	}
	refuse(text, name);
}

/* The offset of a field of a record, which then reaches to its end at least. */
static u32 sized(struct page_layout *layout, const struct text *text, const char *name, u32 bytes)
{
	struct field field = field_at(text, name);

	if (field.bytes != bytes || field.offset > 4096)
		refuse(text, name);
	if (layout->record_bytes < field.offset + bytes)
		layout->record_bytes = field.offset + bytes;
	return field.offset;
}

static void read_page_header(struct page_layout *layout)
{
	struct text text = { .file = "events/header_page" };
	struct field data;

	read_text(&text);
	data = field_at(&text, "data");
	layout->commit = field_at(&text, "commit");
	layout->data_offset = data.offset;
	layout->page_bytes = data.offset + data.bytes;
	if (layout->commit.bytes != sizeof(u32) && layout->commit.bytes != sizeof(u64))
		refuse(&text, "commit");
	if (data.offset < layout->commit.offset + layout->commit.bytes || data.offset > 4096 ||
	    data.bytes < 64 || data.bytes > PAGE_BYTES_MAX)
		refuse(&text, "data");
}

static void read_record_format(struct page_layout *layout)
{
	struct text text = { .file = EVENT_DIR "format" };

	read_text(&text);
	layout->record_bytes = 0;
	layout->common_type = sized(layout, &text, "common_type", sizeof(u16));
	layout->upid = sized(layout, &text, "upid", sizeof(s64));
	layout->time_ns = sized(layout, &text, "time_ns", sizeof(u64));
	layout->cpu = sized(layout, &text, "cpu", sizeof(u16));
	layout->flags = sized(layout, &text, "flags", sizeof(u16));
	layout->payload = sized(layout, &text, "payload", sizeof(u32));
}

static void read_record_type(struct page_layout *layout)
{
	struct text text = { .file = EVENT_DIR "id" };

	read_text(&text);
	layout->type = (u32)strtoul(text.bytes, NULL, 10);
	if (layout->type == 0)
		refuse(&text, "the event's number");
}

static void read_layout(struct page_layout *layout)
{
	read_page_header(layout);
	check_entries();
	read_record_format(layout);
	read_record_type(layout);
}

/* ---- the instance ---- */

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
	read_layout(layout);
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

/* Its text is made for each read. */
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
