// SPDX-License-Identifier: Apache-2.0
/*
 * Contents of response files -> the file beside the trace. Each content is kept and written once; the
 * number of files, and the bytes of contents and paths, have a limit.
 */
#include <stdio.h>
#include <string.h>

#include "capture/named.h"
#include "capture/options.h"
#include "capture/output.h"
#include "capture/trace.h"

#define TOTAL_BYTES (64 << 20) /* of different contents, and of paths */
#define MAX_FILES 65536
#define N_BUCKETS 1024

struct content {
	struct content *next; /* in its bucket */
	u64 hash;
	long number; /* of the record that holds it, -1 before it is written */
	size_t len;
	char text[];
};

struct saved {
	struct saved *next;
	struct content *content;
	s64 upid;
	size_t len;
	char path[];
};

static struct saved *first_file;
static struct saved **last_file = &first_file;
static struct content *buckets[N_BUCKETS];
static size_t n_files;
static size_t n_bytes;

static struct content *find_content(const char *text, size_t len)
{
	u64 hash = named_hash(text, len);
	struct content **bucket = &buckets[hash % N_BUCKETS];
	struct content *content;

	for (content = *bucket; content; content = content->next)
		if (content->hash == hash && content->len == len &&
		    !memcmp(content->text, text, len))
			return content;
	if (n_bytes + len > TOTAL_BYTES)
		return NULL;
	content = must_alloc(sizeof(*content) + len);
	content->hash = hash;
	content->number = -1;
	content->len = len;
	memcpy(content->text, text, len);
	content->next = *bucket;
	*bucket = content;
	n_bytes += len;
	return content;
}

struct saved *saved_make(s64 upid, const char *path, size_t path_len, const char *text, size_t len)
{
	struct content *content = NULL;
	struct saved *file;

	if (n_files < MAX_FILES && n_bytes + path_len <= TOTAL_BYTES)
		content = find_content(text, len);
	if (!content)
		return NULL;
	file = must_alloc(sizeof(*file) + path_len);
	file->next = NULL;
	file->content = content;
	file->upid = upid;
	file->len = path_len;
	memcpy(file->path, path, path_len);
	n_files++;
	n_bytes += path_len;
	return file;
}

void saved_keep(struct saved *saved)
{
	*last_file = saved;
	last_file = &saved->next;
}

static void put_files(FILE *out)
{
	struct saved *file;
	long n = 0;

	fputs("etrace response files 1\n", out);
	for (file = first_file; file; file = file->next) {
		struct content *content = file->content;
		bool is_new = content->number < 0;

		if (is_new)
			content->number = n++;
		fprintf(out, "%s %lld %zu %lld\n", is_new ? "file" : "same", (long long)file->upid,
			file->len, is_new ? (long long)content->len : (long long)content->number);
		fwrite(file->path, 1, file->len, out);
		putc('\n', out);
		if (is_new) {
			fwrite(content->text, 1, content->len, out);
			putc('\n', out);
		}
	}
}

void saved_put(void)
{
	if (first_file && output_is_published())
		output_write_whole(options.responses_path, "response files", put_files);
}
