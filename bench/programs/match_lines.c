// SPDX-License-Identifier: Apache-2.0
/*
 * match_lines PATTERNS LINES STEP: every STEPth line against every pattern; prints seconds of CPU to
 * prepare and to scan, bytes scanned, matches. By fnmatch(3) in a loop, or with -DVECTORSCAN (and
 * -lhs) by one vectorscan database of the patterns written as regular expressions.
 */
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef VECTORSCAN
#include <hs/hs.h>
#endif

struct lines {
	char **at;
	size_t *lens;
	unsigned int n;
};

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void die(const char *what)
{
	fprintf(stderr, "match_lines: %s\n", what);
	exit(1);
}

static char *read_file(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	char *text;

	if (!file || fseek(file, 0, SEEK_END))
		die(path);
	*len = (size_t)ftell(file);
	rewind(file);
	text = malloc(*len + 1);
	if (!text || fread(text, 1, *len, file) != *len)
		die(path);
	fclose(file);
	text[*len] = 0;
	return text;
}

static struct lines read_lines(const char *path)
{
	size_t len;
	char *text = read_file(path, &len);
	struct lines lines = { malloc((len + 1) * sizeof(char *)), malloc((len + 1) * sizeof(size_t)), 0 };

	if (!lines.at || !lines.lens)
		die("no memory");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		lines.at[lines.n] = line;
		lines.lens[lines.n++] = strlen(line);
	}
	return lines;
}

#ifdef VECTORSCAN
static hs_database_t *database;
static hs_scratch_t *scratch;

/* A glob as a regular expression; a star at either end is left out, not matched. */
static char *to_regex(const char *glob)
{
	char *out = malloc(2 * strlen(glob) + 3);
	char *end = out;

	if (!out)
		die("no memory");
	if (*glob == '*')
		glob++;
	else
		*end++ = '^';
	for (; *glob && !(glob[0] == '*' && !glob[1]); glob++) {
		if (*glob == '*')
			*end++ = '.';
		else if (strchr(".+(){}|^$\\", *glob))
			*end++ = '\\';
		*end++ = *glob == '?' ? '.' : *glob;
	}
	if (!*glob)
		*end++ = '$';
	*end = 0;
	return out;
}

static void prepare(const struct lines *patterns)
{
	char **regexes = calloc(patterns->n, sizeof(char *));
	unsigned int *flags = calloc(patterns->n, sizeof(int)), *ids = calloc(patterns->n, sizeof(int));
	hs_compile_error_t *error;

	for (unsigned int i = 0; i < patterns->n; i++) {
		regexes[i] = to_regex(patterns->at[i]);
		flags[i] = HS_FLAG_DOTALL | HS_FLAG_SINGLEMATCH;
		ids[i] = i;
	}
	if (hs_compile_multi((const char *const *)regexes, flags, ids, patterns->n, HS_MODE_BLOCK, NULL,
			     &database, &error))
		die(error->message);
	if (hs_alloc_scratch(database, &scratch))
		die("no scratch");
}

static int count(unsigned int id, unsigned long long from, unsigned long long to, unsigned int flags,
		 void *n)
{
	(void)id;
	(void)from;
	(void)to;
	(void)flags;
	++*(unsigned long *)n;
	return 0;
}

static unsigned long match(const struct lines *patterns, const char *line, size_t len)
{
	unsigned long n = 0;

	(void)patterns;
	if (hs_scan(database, line, (unsigned int)len, 0, scratch, count, &n))
		die("no scan");
	return n;
}
#else
static void prepare(const struct lines *patterns)
{
	(void)patterns;
}

static unsigned long match(const struct lines *patterns, const char *line, size_t len)
{
	unsigned long n = 0;

	(void)len;
	for (unsigned int i = 0; i < patterns->n; i++)
		n += !fnmatch(patterns->at[i], line, 0);
	return n;
}
#endif

int main(int argc, char **argv)
{
	if (argc != 4)
		die("usage: match_lines PATTERNS LINES STEP");
	struct lines patterns = read_lines(argv[1]), lines = read_lines(argv[2]);
	unsigned long n_matches = 0, step = strtoul(argv[3], NULL, 10);
	size_t n_bytes = 0;
	double start = cpu_seconds(), prepared;

	prepare(&patterns);
	prepared = cpu_seconds();
	for (size_t i = 0; i < lines.n; i += step) {
		n_matches += match(&patterns, lines.at[i], lines.lens[i]);
		n_bytes += lines.lens[i];
	}
	printf("%f %f %zu %lu\n", prepared - start, cpu_seconds() - prepared, n_bytes, n_matches);
	return 0;
}
