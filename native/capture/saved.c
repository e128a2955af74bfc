// SPDX-License-Identifier: Apache-2.0
/*
 * Contents of response files -> the file beside the trace. Each content is kept and written once; the
 * number of files, and the bytes of contents and paths, have a limit.
 */
#include <stdio.h>
#include <string.h>

#include "capture/interned.h"
#include "capture/options.h"
#include "capture/output.h"
#include "capture/trace.h"

#define TOTAL_BYTES ((size_t)64 << 20) /* of different contents, and of paths */
#define MAX_FILES 65536

struct saved {
	struct saved *next;
	u32 content; /* its number in `contents` */
	s64 upid;
	size_t len;
	char path[];
};

static struct saved *first_file;
static struct saved **last_file = &first_file;
static struct interned contents;
static size_t n_files;
static size_t n_path_bytes;

static bool has_room(size_t path_len, const char *text, size_t len)
{
	size_t used = contents.n_bytes + n_path_bytes;
	size_t left = used < TOTAL_BYTES ? TOTAL_BYTES - used : 0;

	if (n_files == MAX_FILES || path_len > left)
		return false;
	return path_len + len <= left || interned_has(&contents, text, len);
}

bool saved_add(s64 upid, const char *path, size_t path_len, const char *text, size_t len)
{
	struct saved *file;

	if (!has_room(path_len, text, len))
		return false;
	file = must_alloc(sizeof(*file) + path_len);
	file->next = NULL;
	file->content = interned_add(&contents, text, len);
	file->upid = upid;
	file->len = path_len;
	memcpy(file->path, path, path_len);
	n_files++;
	n_path_bytes += path_len;
	*last_file = file;
	last_file = &file->next;
	return true;
}

static void put_files(FILE *out)
{
	struct saved *file;
	u32 n_written = 0;

	fputs("etrace response files 1\n", out);
	for (file = first_file; file; file = file->next) {
		bool is_new = file->content == n_written; /* they are numbered in this order */
		size_t len;
		const char *text = interned_at(&contents, file->content, &len);

		fprintf(out, "%s %lld %zu %lld\n", is_new ? "file" : "same", (long long)file->upid,
			file->len, is_new ? (long long)len : (long long)file->content);
		fwrite(file->path, 1, file->len, out);
		putc('\n', out);
		if (is_new) {
			fwrite(text, 1, len, out);
			putc('\n', out);
			n_written++;
		}
	}
}

void saved_put(void)
{
	if (first_file && output_is_published())
		output_write_whole(options.responses_path, "response files", put_files);
}
