/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace that grows in one way only, fast enough to feed the parser through a pipe:
 *
 *     generate_trace processes N   N processes that run no program; each forks 100 others
 *     generate_trace events N      one process that opens and closes N / 2 times, 1,000 files in turn
 *     generate_trace files N       the same, with a new file each time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PID_BITS 22
#define STEP_NS 1000ull
#define NS_PER_SECOND 1000000000ull
#define N_FILES 1000
#define N_CHILDREN 100

static unsigned long long now_ns = NS_PER_SECOND;

static void put_head(unsigned long long upid)
{
	now_ns += STEP_NS;
	printf("0: %llu,0,%llu,%llu!", upid, now_ns / NS_PER_SECOND, now_ns % NS_PER_SECOND);
}

static unsigned long long upid_of(unsigned long long number)
{
	return (number + 1) << PID_BITS | 1;
}

static void put_processes(unsigned long long n)
{
	for (unsigned long long i = 1; i <= n; i++) {
		put_head(upid_of(i / N_CHILDREN));
		printf("SchedFork|pid=%llu\n", upid_of(i));
		put_head(upid_of(i));
		puts("Close|fd=255");
	}
}

static void put_name(const char *tag, const char *name)
{
	put_head(upid_of(0));
	printf("%s|%s\n", tag, name);
}

static void put_events(unsigned long long n, unsigned long long n_files)
{
	char name[64];

	for (unsigned long long i = 0; i < n / 2; i++) {
		int len = snprintf(name, sizeof(name), "/nowhere/%llu.h", i % n_files);

		put_head(upid_of(0));
		printf("Open|fnamesize=%d,forigsize=%d,flags=524288,mode=0,fd=5\n", len, len);
		put_name("FN", name);
		put_name("FO", name);
		put_head(upid_of(0));
		puts("Close|fd=5");
	}
}

int main(int argc, char **argv)
{
	unsigned long long n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;

	puts("INITCWD=/");
	if (n && !strcmp(argv[1], "processes"))
		put_processes(n);
	else if (n && !strcmp(argv[1], "events"))
		put_events(n, N_FILES);
	else if (n && !strcmp(argv[1], "files"))
		put_events(n, n);
	else
		return 2;
	return fflush(stdout) || ferror(stdout);
}
