// SPDX-License-Identifier: Apache-2.0
/*
 * match_lines PATTERNS LINES STEP: every STEPth line against every pattern by fnmatch(3); prints
 * seconds of CPU to prepare (0) and to scan, bytes scanned, matches.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static unsigned long match(const struct lines *patterns, const char *line)
{
	unsigned long n = 0;

	for (unsigned int i = 0; i < patterns->n; i++)
		n += !fnmatch(patterns->at[i], line, 0);
	return n;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		die("usage: match_lines PATTERNS LINES STEP");
	struct lines patterns = read_lines(argv[1]), lines = read_lines(argv[2]);
	unsigned long n_matches = 0, step = strtoul(argv[3], NULL, 10);
	size_t n_bytes = 0;
	double start = cpu_seconds();

	for (size_t i = 0; i < lines.n; i += step) {
		n_matches += match(&patterns, lines.at[i]);
		n_bytes += lines.lens[i];
	}
	printf("0 %f %zu %lu\n", cpu_seconds() - start, n_bytes, n_matches);
	return 0;
}
