// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that look up names, so that the loop waits for no file system.
 *
 * Cached names are looked up directly: openat2() with RESOLVE_CACHED (Linux 5.12) fails if it would
 * have to wait. statx() with AT_STATX_DONT_SYNC asks no file system either. A thread does the rest.
 * The loop waits a millisecond for its answer, which is enough for a disk's cache; after that it
 * continues with other tasks, and the thread wakes it by a signal.
 *
 * The signal can come just before the loop begins to wait, and waitpid() cannot open a mask
 * meanwhile: it is sent again until the loop has seen the answer.
 */
#include "task/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/proc.h"
#include "capture/program.h"
#include "capture/rights.h"
#include "capture/signals.h"
#include "task/memory.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

#define AT_ONCE_NS 1000000u
#define SOON_NS 50000000u
#define WAKE_AGAIN_NS 1000000u
#define MAX_THREADS 1024 /* each may wait for a file system forever */
#define STACK_BYTES (256 << 10)

/*
 * A name that is looked up, or a string that is brought in, and the answer. It belongs to its task
 * until the stop is handled.
 */
struct lookup {
	struct lookup *next; /* of the same task */
	struct lookup *next_queued; /* in the queue of requests or of answers */
	struct task *task; /* NULL: nobody wants the answer */
	pid_t root_of; /* whose root directory, or 0 */
	struct rights rights; /* with which it is looked up */
	pid_t memory_of; /* whose string is brought in, or 0 */
	u64 address;
	int flags;
	int fd; /* or -errno */
	bool is_done;
	bool is_noted; /* the loop continues without it */
	char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER;
static pthread_cond_t answered; /* timed waits, by the monotonic clock */
static pthread_cond_t noted;
static pthread_t loop_thread;
static struct lookup *first_queued;
static struct lookup **last_queued = &first_queued;
static struct lookup *first_answered;
static u64 n_answers; /* of those that the loop does not wait for */
static u64 n_answers_noted;
static size_t n_queued;
static size_t n_threads;
static size_t n_idle;
static size_t n_pending; /* only the loop uses it: answers that are to come */

/* As the task sees the name: below its root directory, with its rights. */
static int open_as(const char *path, int flags, u64 resolve, pid_t root_of, const struct rights *rights)
{
	char name[PROC_NAME_MAX];
	int root = -1;
	int fd;

	if (root_of) {
		proc_name(name, root_of, "root");
		root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return -errno;
	}
	fd = rights_open(rights, path, flags, resolve, root);
	if (root >= 0)
		close(root);
	return fd;
}

/* -EAGAIN where the kernel would have to wait, or does not know. */
static int open_cached(const char *path, int flags, pid_t root_of, const struct rights *rights)
{
	int fd = open_as(path, flags, RESOLVE_CACHED, root_of, rights);

	return fd == -EINVAL || fd == -ENOSYS || fd == -EPERM ? -EAGAIN : fd;
}

static void lookup_free(struct lookup *lookup)
{
	if (lookup->fd >= 0)
		close(lookup->fd);
	free(lookup);
}

/* The loop went on without this answer: put it where the loop finds it, and wake the loop. */
static void send_answer(struct lookup *lookup)
{
	u64 own = ++n_answers;

	lookup->next_queued = first_answered;
	first_answered = lookup;
	while (n_answers_noted < own) {
		struct timespec end = monotonic_after(WAKE_AGAIN_NS);

		pthread_kill(loop_thread, SIGURG);
		pthread_cond_timedwait(&noted, &lock, &end);
	}
}

static void answer(struct lookup *lookup)
{
	pthread_mutex_unlock(&lock);
	if (lookup->memory_of)
		memory_bring_in(lookup->memory_of, lookup->address);
	else
		lookup->fd = open_as(lookup->path, lookup->flags, 0, lookup->root_of, &lookup->rights);
	pthread_mutex_lock(&lock);
	lookup->is_done = true;
	if (lookup->is_noted)
		send_answer(lookup);
	else
		pthread_cond_broadcast(&answered);
}

static void *serve(void *nothing)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct lookup *lookup = first_queued;

		if (lookup) {
			first_queued = lookup->next_queued;
			if (!first_queued)
				last_queued = &first_queued;
			n_queued--;
			answer(lookup);
		} else {
			n_idle++;
			pthread_cond_wait(&queued, &lock);
			n_idle--;
		}
	}
	return nothing;
}

static void note_wake(int signal)
{
	(void)signal; /* it has ended a waitpid() */
}

static void prepare(void)
{
	pthread_condattr_t monotonic;

	loop_thread = pthread_self();
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&answered, &monotonic);
	pthread_cond_init(&noted, &monotonic);
	signals_set(SIGURG, note_wake);
}

/* All signals of the tracer are for the loop. */
static bool start_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t old;
	sigset_t all;
	bool started;

	if (!n_threads)
		prepare();
	if (n_threads == MAX_THREADS)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	started = pthread_create(&thread, &attributes, serve, NULL) == 0;
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	n_threads += started;
	return started;
}

static struct lookup *lookup_create(const char *path, int flags, pid_t root_of, const struct rights *rights)
{
	size_t size = strlen(path) + 1;
	struct lookup *lookup = must_alloc(sizeof(*lookup) + size);

	memset(lookup, 0, sizeof(*lookup));
	lookup->root_of = root_of;
	lookup->rights = *rights;
	lookup->flags = flags;
	lookup->fd = -EINPROGRESS;
	memcpy(lookup->path, path, size);
	return lookup;
}

/* No name waits for another. */
static void put_in_queue(struct lookup *lookup)
{
	if (n_idle <= n_queued && !start_thread()) {
		lookup->fd = -EAGAIN;
		lookup->is_done = true;
		return;
	}
	*last_queued = lookup;
	last_queued = &lookup->next_queued;
	n_queued++;
	pthread_cond_signal(&queued);
}

/* Give it to a thread and wait a little. Whether the answer is there. */
static bool ask(struct lookup *lookup, u64 patience_ns)
{
	struct timespec end;

	pthread_mutex_lock(&lock);
	put_in_queue(lookup);
	end = monotonic_after(patience_ns);
	while (!lookup->is_done && pthread_cond_timedwait(&answered, &lock, &end) != ETIMEDOUT)
		;
	lookup->is_noted = !lookup->is_done;
	pthread_mutex_unlock(&lock);
	n_pending += lookup->is_noted;
	return !lookup->is_noted;
}

bool lookup_is_pending(const struct task *task)
{
	return task->lookups && task->lookups->is_noted;
}

static struct lookup *find_answer(const struct task *task, const char *path, int flags)
{
	struct lookup *lookup;

	for (lookup = task->lookups; lookup; lookup = lookup->next)
		if (!lookup->memory_of && lookup->flags == flags && !strcmp(lookup->path, path))
			return lookup;
	return NULL;
}

/* The answer stays with the task: the handler may run again and ask again. */
static int copy_answer(const struct lookup *lookup)
{
	int fd = lookup->fd < 0 ? lookup->fd : fcntl(lookup->fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 && lookup->fd >= 0 ? -errno : fd;
}

static struct lookup *add_lookup(struct task *task, struct lookup *lookup)
{
	lookup->task = task;
	lookup->next = task->lookups;
	task->lookups = lookup;
	return lookup;
}

/* Read once, for all names of a stop. NULL: they are unknown. */
static const struct rights *rights_at_stop(struct task *task)
{
	if (!task->rights) {
		task->rights = must_alloc(sizeof(*task->rights));
		if (!rights_of_task(task->tid, task->rights)) {
			free(task->rights);
			task->rights = NULL;
		}
	}
	return task->rights;
}

int lookup_open(struct task *task, const char *path, int flags, bool in_root)
{
	pid_t root_of = in_root ? task->tid : 0;
	const struct rights *rights;
	struct lookup *lookup;
	int fd;

	if (lookup_is_pending(task))
		return -EINPROGRESS;
	lookup = find_answer(task, path, flags);
	if (lookup)
		return copy_answer(lookup);
	rights = rights_at_stop(task);
	if (!rights)
		return -EACCES;
	fd = open_cached(path, flags, root_of, rights);
	if (fd != -EAGAIN)
		return fd;
	lookup = add_lookup(task, lookup_create(path, flags, root_of, rights));
	return ask(lookup, AT_ONCE_NS) ? copy_answer(lookup) : -EINPROGRESS;
}

static bool was_brought_in(const struct task *task, u64 address)
{
	struct lookup *lookup;

	for (lookup = task->lookups; lookup; lookup = lookup->next)
		if (lookup->memory_of && lookup->address == address)
			return true;
	return false;
}

bool lookup_string(struct task *task, u64 address)
{
	struct lookup *lookup;

	if (lookup_is_pending(task))
		return false;
	if (was_brought_in(task, address) || memory_is_there(task, address, MEMORY_CHUNK))
		return true;
	lookup = add_lookup(task, lookup_create("", 0, 0, rights_own()));
	lookup->memory_of = task->tid;
	lookup->address = address;
	return ask(lookup, AT_ONCE_NS);
}

int lookup_soon(const char *path, int flags)
{
	int fd = open_cached(path, flags, 0, rights_own());
	struct lookup *lookup;

	if (fd != -EAGAIN)
		return fd;
	lookup = lookup_create(path, flags, 0, rights_own());
	if (!ask(lookup, SOON_NS))
		return -ETIMEDOUT;
	fd = copy_answer(lookup);
	lookup_free(lookup);
	return fd;
}

void lookup_forget(struct task *task)
{
	free(task->rights);
	task->rights = NULL;
	while (task->lookups) {
		struct lookup *lookup = task->lookups;

		task->lookups = lookup->next;
		lookup->task = NULL;
		if (!lookup->is_noted) /* or else its thread still has it */
			lookup_free(lookup);
	}
}

static struct lookup *take_answered(void)
{
	struct lookup *lookup;

	pthread_mutex_lock(&lock);
	lookup = first_answered;
	if (lookup)
		first_answered = lookup->next_queued;
	n_answers_noted = n_answers;
	pthread_cond_broadcast(&noted);
	pthread_mutex_unlock(&lock);
	return lookup;
}

struct task *lookup_next_answered(void)
{
	while (n_pending) {
		struct lookup *lookup = take_answered();

		if (!lookup)
			return NULL;
		n_pending--;
		lookup->is_noted = false;
		if (lookup->task)
			return lookup->task;
		lookup_free(lookup);
	}
	return NULL;
}

static bool take_stat(const struct statx *stx, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	st->st_ino = stx->stx_ino;
	st->st_mode = stx->stx_mode;
	st->st_nlink = stx->stx_nlink;
	return true;
}

#define NO_WAIT (AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT)
#define WANTED (STATX_TYPE | STATX_INO | STATX_NLINK)

bool lookup_stat_fd(int fd, struct stat *st)
{
	struct statx stx;

	return statx(fd, "", AT_EMPTY_PATH | NO_WAIT, WANTED, &stx) == 0 && take_stat(&stx, st);
}

bool lookup_stat_link(const char *link, struct stat *st)
{
	struct statx stx;

	return statx(AT_FDCWD, link, NO_WAIT, WANTED, &stx) == 0 && take_stat(&stx, st);
}
