// SPDX-License-Identifier: Apache-2.0
/*
 * Files that are read whole. A name comes from the command line of whatever the build started, so
 * devices and pipes are not opened, and only a file on a disk is read.
 */
#include "trace/files.h"

#include <windows.h>
#include <stdlib.h>

#include "text/path.h"
#include "text/wtf8.h"
#include "trace/report.h"

#define CHUNK (64u << 10)

static bool read_all(HANDLE file, size_t max_bytes, struct buffer *out)
{
	char *chunk = must_realloc(NULL, CHUNK);
	DWORD n = 0;
	bool is_read;

	while ((is_read = ReadFile(file, chunk, CHUNK, &n, NULL)) && n && out->len <= max_bytes)
		buffer_add(out, chunk, n);
	free(chunk);
	if (is_read && out->len > max_bytes)
		SetLastError(ERROR_FILE_TOO_LARGE);
	return is_read && out->len <= max_bytes;
}

bool file_read(struct text name, size_t max_bytes, struct buffer *content)
{
	struct buffer raw = { 0 };
	DWORD mode = 0;
	wchar_t *wide;
	HANDLE file;
	bool is_read;

	if (!path_is_plain(name)) {
		SetLastError(ERROR_BAD_PATHNAME);
		return false;
	}
	wide = wide_from_text(name);
	SetThreadErrorMode(SEM_FAILCRITICALERRORS, &mode); /* no window asks for a disk */
	file = CreateFileW(wide, GENERIC_READ,
			   FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
			   OPEN_EXISTING, FILE_FLAG_SEQUENTIAL_SCAN, NULL);
	free(wide);
	SetThreadErrorMode(mode, NULL);
	if (file == INVALID_HANDLE_VALUE)
		return false;
	is_read = GetFileType(file) == FILE_TYPE_DISK && read_all(file, max_bytes, &raw);
	if (is_read)
		wtf8_from_file(content, buffer_text(&raw));
	CloseHandle(file);
	buffer_free(&raw);
	return is_read;
}
