// SPDX-License-Identifier: Apache-2.0
/*
 * spend MODE: uses CPU time, memory and I/O in a way that is known, and prints what the kernel says
 * it used: lines `name value`.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000
#define HELD (32 << 20)
#define MOVED 300000
#define N_NAPS 30
#define N_CROWD 30
#define N_BRIEF 60

extern char **environ;
static const char *self;
static pthread_barrier_t burnt;
char *held; /* seen elsewhere: or it would not be filled */

static void must(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	exit(1);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void burn(int64_t ms)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ms * NS_PER_MS;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void start_thread(pthread_t *thread, void *(*function)(void *argument))
{
	must(!pthread_create(thread, NULL, function, NULL), "pthread_create");
}

static void *burn_50(void *argument)
{
	burn(50);
	return argument;
}

static void move(const char *from, const char *to)
{
	static char bytes[MOVED];
	int in = open(from, O_RDONLY);
	int out = open(to, O_WRONLY);

	must(read(in, bytes, sizeof(bytes)) == sizeof(bytes), from);
	must(write(out, bytes, sizeof(bytes)) == sizeof(bytes), to);
	close(in);
	close(out);
}

static void nap(void)
{
	static const struct timespec pause = { .tv_nsec = NS_PER_MS };

	for (int i = 0; i < N_NAPS; i++)
		nanosleep(&pause, NULL);
}

static void run_child(char *mode)
{
	char *words[] = { "spend", mode, NULL };
	pid_t pid;

	must(!posix_spawn(&pid, self, NULL, NULL, words, environ), "posix_spawn");
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
}

static void print_used(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	printf("cpu_ns %lld\nmax_rss %ld\nvoluntary %ld\nforced %ld\n",
	       (long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID), used.ru_maxrss * 1024,
	       used.ru_nvcsw, used.ru_nivcsw);
	fflush(stdout);
}

static void *move_some(void *argument)
{
	move("/dev/zero", "/dev/null");
	return argument;
}

static void run_thread(void *(*function)(void *argument))
{
	pthread_t thread;

	start_thread(&thread, function);
	pthread_join(thread, NULL);
}

/* The second program of the process: two threads, memory, I/O, sleep. */
static void go_on(void)
{
	pthread_t thread;

	held = malloc(HELD);
	must(held != NULL, "malloc");
	memset(held, 1, HELD);
	start_thread(&thread, burn_50);
	burn(50);
	pthread_join(thread, NULL);
	move("/dev/zero", "/dev/null");
	nap();
	print_used();
}

static void mover(void)
{
	move("/dev/zero", "/dev/null");
}

/* Children that move what this one does not; one that ends without an execution. */
static void parent(void)
{
	char *words[] = { "spend", NULL };
	pid_t pid;

	held = malloc(HELD);
	must(held != NULL, "malloc");
	memset(held, 1, HELD);
	run_child("mover");
	run_child("mover");
	must(posix_spawn(&pid, "/nonexistent", NULL, NULL, words, environ), "posix_spawn");
}

/* What threads moved that have ended, and children as well. */
static void both(void)
{
	run_thread(move_some);
	run_child("mover");
}

static int64_t spun_ns;

/* Without a clock of CPU time: to ask one brings what the thread ran up to date. */
static void *tick_less(void *argument)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC), now = begin;

	while (now < begin + NS_PER_MS)
		now = clock_ns(CLOCK_MONOTONIC);
	spun_ns += now - begin;
	return argument;
}

/* None of them is there when a tick looks who runs. */
static void brief_threads(void)
{
	for (int i = 0; i < N_BRIEF; i++)
		run_thread(tick_less);
	printf("spun_ns %lld\nfirst_ns %lld\n", (long long)spun_ns,
	       (long long)clock_ns(CLOCK_THREAD_CPUTIME_ID));
	print_used();
}

static void work(void)
{
	burn(50);
	move("/dev/zero", "/dev/null");
	execl(self, "spend", "on", NULL);
	must(0, self);
}

static int is_zombie(const char *task)
{
	static char text[256];
	FILE *stat = fopen(task, "re");

	must(stat && fgets(text, sizeof(text), stat), task);
	fclose(stat);
	return strstr(text, ") Z ") != NULL;
}

/* Not before: on a loaded machine the first thread may need longer to end than this one to burn. */
static void *burn_after_the_first(void *argument)
{
	char first[64];

	snprintf(first, sizeof(first), "/proc/self/task/%d/stat", (int)getpid());
	while (!is_zombie(first))
		sched_yield();
	return burn_50(argument);
}

static void outlived(void)
{
	pthread_t thread;

	start_thread(&thread, burn_after_the_first);
	pthread_exit(NULL);
}

static void *burn_and_wait(void *argument)
{
	burn(5);
	pthread_barrier_wait(&burnt);
	pause();
	return argument;
}

/* The first thread ends all others. */
static void crowd(void)
{
	pthread_t thread;

	pthread_barrier_init(&burnt, NULL, N_CROWD + 1);
	for (int i = 0; i < N_CROWD; i++)
		start_thread(&thread, burn_and_wait);
	pthread_barrier_wait(&burnt);
	print_used();
	_exit(0);
}

static void *execute(void *argument)
{
	burn(20);
	execl(self, "spend", "brief", NULL);
	return argument;
}

static void thread_executes(void)
{
	pthread_t thread;

	burn(20);
	start_thread(&thread, execute);
	pause();
}

static void killed(void)
{
	burn(20);
	raise(SIGKILL);
}

static void brief(void)
{
}

static const struct {
	const char *word;
	void (*run)(void);
} modes[] = {
	{ "work", work },   { "on", go_on },	     { "outlived", outlived },
	{ "crowd", crowd }, { "thread-executes", thread_executes }, { "killed", killed },
	{ "brief", brief }, { "mover", mover },	     { "parent", parent },
	{ "both", both },   { "brief-threads", brief_threads },
};

int main(int argc, char **argv)
{
	self = "/proc/self/exe";
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[1], modes[i].word)) {
			modes[i].run();
			return 0;
		}
	fprintf(stderr, "usage: spend MODE\n");
	return 2;
}
