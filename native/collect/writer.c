// SPDX-License-Identifier: Apache-2.0
/*
 * Writer of the trace. Events gather in one buffer and go out whole, in large writes. The first
 * write error (a full disk) ends the writing, not the collecting: from there on events are counted
 * as unwritten, and the file is cut after the last whole event.
 */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "collect.h"
#include "compress.h"

#define CONFIGFS_MAGIC 0x62656570 /* fs/configfs/mount.c; not in linux/magic.h */
#define BUFFER_BYTES (1u << 20)
#define FLUSH_BYTES (256u << 10) /* a write of this size costs little next to what gathers it */
#define COMPRESS_BYTES (960u << 10) /* a frame each: larger ones are smaller in sum */
#define COMPRESS_NS 1000000000u
#define UNITS_MAX (64u << 10) /* of a buffer */

/* Text that stays whole: of one event or of several that belong together. */
struct unit {
	size_t end; /* of its text in the buffer */
	size_t n_events;
	size_t n_records;
};

static struct {
	int fd;
	int error;
	const char *name;
	off_t start; /* where our text begins in the file; -1: not a file that can be cut */
	struct etrace_out out;
	size_t unit_start; /* of the unit being put: the text before it is whole */
	struct unit units[UNITS_MAX]; /* whole ones in the buffer */
	size_t n_units;
	size_t n_events; /* of them all */
	size_t n_records;
	u64 flushed_ns;
} output;

/* The trace of --continue keeps its mode. */
static void report_mode(void)
{
	struct stat st;

	if (fstat(output.fd, &st) == 0 && (st.st_mode & 0077))
		say("others than its owner may use '%s' (mode %04o): chmod 600 makes it as "
		    "private as a new one", output.name, (unsigned int)st.st_mode & 07777);
}

/* For its owner alone: arguments and environments hold secrets. */
static void open_file(void)
{
	/* root must not follow or overwrite another user's link or file */
	int flags = options.resume ? O_RDWR | O_NONBLOCK : O_WRONLY | O_CREAT | O_EXCL;

	output.fd = open(options.output, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
	if (output.fd < 0 && errno == EEXIST)
		die("'%s' exists already: remove it or name another file", options.output);
	if (output.fd < 0)
		die("cannot write '%s': %s", options.output, strerror(errno));
	output.name = options.output;
	if (options.resume)
		report_mode();
}

/* Regular files that are orders to the kernel: nothing that is written there is kept. */
static bool is_kernels(int fd)
{
	static const long kinds[] = { BINFMTFS_MAGIC, BPF_FS_MAGIC, CGROUP_SUPER_MAGIC,
				      CGROUP2_SUPER_MAGIC, CONFIGFS_MAGIC, DEBUGFS_MAGIC,
				      EFIVARFS_MAGIC, PROC_SUPER_MAGIC, PSTOREFS_MAGIC,
				      SECURITYFS_MAGIC, SELINUX_MAGIC, SMACK_MAGIC, SYSFS_MAGIC,
				      TRACEFS_MAGIC };
	struct statfs fs;
	size_t i;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if ((long)fs.f_type == kinds[i])
			return true;
	return false;
}

static void find_start(void)
{
	struct stat st;
	int flags = fcntl(output.fd, F_GETFL);

	if (fstat(output.fd, &st) < 0 || flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		die("cannot write %s: it is not open for writing", output.name);
	if (S_ISREG(st.st_mode) && is_kernels(output.fd))
		die("cannot write %s: it is a file of the kernel", output.name);
	output.start = -1;
	if (options.resume)
		output.start = lseek(output.fd, resume_cut(output.fd, output.name), SEEK_SET);
	else if (S_ISREG(st.st_mode))
		output.start = flags & O_APPEND ? st.st_size : lseek(output.fd, 0, SEEK_CUR);
}

void writer_open(void)
{
	if (options.output) {
		open_file();
	} else {
		output.fd = options.output_fd;
		output.name = options.output_fd == STDOUT_FILENO ? "the standard output" :
								   "the descriptor of --output-fd";
	}
	find_start();
	if (options.zstd)
		compress_init();
	etrace_out_init(&output.out, must_realloc(NULL, BUFFER_BYTES), BUFFER_BYTES);
	output.flushed_ns = monotonic_ns();
}

/* A reader of ours who stalls: the request to end is answered, the next one ends us here. */
static void await_room(void)
{
	static bool is_said;
	struct pollfd room = { .fd = output.fd, .events = POLLOUT };

	while (poll(&room, 1, 0) == 0) {
		bool seen = stop_requested;

		if (seen && !is_said) {
			say("waiting for the reader of %s to take the rest; another signal ends "
			    "this at once", output.name);
			is_said = true;
		}
		stop_wait(&room, 1, WAIT_FOREVER, seen);
	}
}

/* Bytes that went out; fewer than `len` when that failed, with errno. */
static size_t write_all(const char *text, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n;

		if (output.start < 0)
			await_room();
		n = write(output.fd, text + done, len - done);
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			done += (size_t)n;
	}
	return done;
}

/* By memchr(3), which looks at 32 bytes at once whatever this file is compiled with. */
static u64 count_lines(const char *text, size_t len)
{
	const char *end = text + len;
	u64 n = 0;

	while (text < end && (text = memchr(text, '\n', (size_t)(end - text)))) {
		text++;
		n++;
	}
	return n;
}

/* Text up to the end of `units` is in the file. */
static void account(struct unit units)
{
	counters.bytes += units.end;
	counters.lines += count_lines(output.out.buf, units.end);
	counters.events += units.n_events;
	counters.written_records += units.n_records;
}

/* Of `done` bytes keep the whole events; a file can be cut, a pipe cannot. */
static void keep_whole_events(size_t done)
{
	struct unit kept = { 0, 0, 0 };
	size_t i;

	for (i = 0; !options.zstd && i < output.n_units && output.units[i].end <= done; i++) {
		kept.end = output.units[i].end;
		kept.n_events += output.units[i].n_events;
		kept.n_records += output.units[i].n_records;
	}
	account(kept);
	counters.unwritten += output.n_events - kept.n_events;
	if (output.start < 0 ||
	    ftruncate(output.fd, output.start + (off_t)(counters.written + kept.end)) < 0)
		kept.end = done;
	counters.written += kept.end;
}

static void fail(int error, size_t done)
{
	output.error = error;
	keep_whole_events(done);
	say("cannot write %s: %s; %" PRIu64 " bytes with %" PRIu64 " whole events are kept, events "
	    "from here on are lost%s", output.name, strerror(error), counters.written,
	    counters.events, error == ENOSPC ? ": free some space before the next build" : "");
}

/* NFS and quotas may report only now that there was no room: how much is missing is not known. */
static void fail_close(int error)
{
	output.error = error;
	counters.unwritten++;
	say("cannot finish %s: %s; its end may be missing: at least 1 event is counted as lost",
	    output.name, strerror(error));
}

static void write_buffer(void)
{
	const char *text = output.out.buf;
	size_t len = output.out.len, done;

	if (options.zstd)
		text = compress(text, &len);
	done = write_all(text, len);
	if (done < len) {
		fail(errno, done);
	} else {
		counters.written += done;
		account((struct unit){ output.out.len, output.n_events, output.n_records });
	}
	output.flushed_ns = monotonic_ns();
}

/* Only between events: the buffer holds whole events. */
void writer_flush(bool now)
{
	size_t enough = options.zstd ? COMPRESS_BYTES : 1;

	if (!now && output.out.len < enough &&
	    (!output.out.len || monotonic_ns() - output.flushed_ns < COMPRESS_NS))
		return;
	if (output.out.len && !output.error)
		write_buffer();
	output.n_units = 0;
	output.n_events = 0;
	output.n_records = 0;
	output.out.len = 0;
	report_progress(false); /* a long drain must be seen to go forward */
}

void writer_begin(void)
{
	output.unit_start = output.out.len;
}

struct etrace_out *writer_text(void)
{
	return &output.out;
}

void writer_cancel(void)
{
	output.out.len = output.unit_start;
}

static void grow(size_t needed)
{
	while (output.out.size < needed)
		output.out.size *= 2;
	output.out.buf = must_realloc(output.out.buf, output.out.size);
}

bool writer_end(size_t n_events, size_t n_records)
{
	size_t needed = output.out.len - output.unit_start;

	if (output.error) {
		counters.unwritten += n_events;
		writer_cancel();
		return true;
	}
	if (output.out.len > output.out.size) {
		writer_cancel();
		writer_flush(true);
		grow(needed);
		return false;
	}
	output.units[output.n_units++] = (struct unit){ output.out.len, n_events, n_records };
	output.n_events += n_events;
	output.n_records += n_records;
	if (output.out.len >= (options.zstd ? COMPRESS_BYTES : FLUSH_BYTES) ||
	    output.n_units == UNITS_MAX)
		writer_flush(true);
	return true;
}

static void append(const char *text, size_t len)
{
	struct etrace_out *out = &output.out;

	if (out->len <= out->size && len <= out->size - out->len)
		memcpy(out->buf + out->len, text, len);
	out->len += len;
}

void writer_put_copy(const char *text, size_t len, size_t n_events)
{
	do {
		writer_begin();
		append(text, len);
	} while (!writer_end(n_events, 0));
}

static void put_escaped(char c)
{
	if (c == '\n')
		append("\\012", 4); /* as the kernel does in /proc/mounts */
	else
		append(&c, 1);
}

void writer_put_initial_cwd(const char *cwd)
{
	append(ETRACE_FIRST_LINE, strlen(ETRACE_FIRST_LINE));
	for (; *cwd; cwd++)
		put_escaped(*cwd);
	append("\n", 1);
	if (output.out.len > output.out.size)
		die("--cwd: this name is too long");
	writer_flush(true);
}

int writer_fd(void)
{
	return output.fd;
}

void writer_close(void)
{
	writer_flush(true);
	if (close(output.fd) < 0 && !output.error)
		fail_close(errno);
	free(output.out.buf);
}

int writer_error(void)
{
	return output.error;
}
