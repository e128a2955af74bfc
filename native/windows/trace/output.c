// SPDX-License-Identifier: Apache-2.0
/* An output file that appears whole or not at all. */
#include "trace/output.h"

#include <stdio.h>
#include <stdlib.h>

#include "trace/report.h"

#define FLOW_BYTES (64u << 10)
#define SUFFIX_MAX 32
#define RENAME_TRIES 20
#define RENAME_WAIT_MS 50

static void set_removal(struct output *output, BOOL is_removed)
{
	FILE_DISPOSITION_INFO info = { .DeleteFile = (BOOLEAN)is_removed };

	if (!SetFileInformationByHandle(output->file, FileDispositionInfo, &info, sizeof(info)) &&
	    !is_removed)
		output->error = GetLastError();
}

void output_open(struct output *output, const wchar_t *path)
{
	size_t len = wcslen(path) + 1;
	struct buffer shown = text_from_wide(path, len - 1);
	DWORD attributes = GetFileAttributesW(path);

	if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
		die("%s: a directory; give another file", shown.data);
	*output = (struct output){ 0 };
	output->path = must_realloc(NULL, len * sizeof(wchar_t));
	memcpy(output->path, path, len * sizeof(wchar_t));
	output->temporary = must_realloc(NULL, (len + SUFFIX_MAX) * sizeof(wchar_t));
	swprintf(output->temporary, len + SUFFIX_MAX, L"%ls.%lu.tmp", path, GetCurrentProcessId());
	output->file = CreateFileW(output->temporary, GENERIC_WRITE | DELETE, FILE_SHARE_DELETE, NULL,
				   CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
	if (output->file == INVALID_HANDLE_VALUE)
		die("%s: %s; is there a directory that you may write?", shown.data,
		    error_text(GetLastError()));
	set_removal(output, TRUE);
	buffer_free(&shown);
}

static void write_all(struct output *output)
{
	size_t at = 0;

	while (at < output->buffer.len && !output->error) {
		size_t left = output->buffer.len - at;
		DWORD n, wanted = (DWORD)(left < FLOW_BYTES ? left : FLOW_BYTES);

		if (!WriteFile(output->file, output->buffer.data + at, wanted, &n, NULL))
			output->error = GetLastError();
		else if (!n)
			output->error = ERROR_DISK_FULL;
		at += n;
	}
	output->n_bytes += output->buffer.len;
	output->buffer.len = 0;
}

void output_flow(struct output *output)
{
	if (output->buffer.len >= FLOW_BYTES)
		write_all(output);
}

/* Virus scanners open a new file for a moment. */
static bool give_name(const struct output *output)
{
	DWORD error = 0;

	for (int i = 0; i < RENAME_TRIES; i++) {
		if (MoveFileExW(output->temporary, output->path, MOVEFILE_REPLACE_EXISTING))
			return true;
		error = GetLastError();
		if (error != ERROR_SHARING_VIOLATION && error != ERROR_ACCESS_DENIED)
			break;
		Sleep(RENAME_WAIT_MS);
	}
	SetLastError(error);
	return false;
}

static void report_failure(const struct output *output, DWORD error, bool is_whole)
{
	struct buffer path = text_from_wide(output->path, wcslen(output->path));
	struct buffer temporary = text_from_wide(output->temporary, wcslen(output->temporary));

	if (is_whole)
		say("error: %s: cannot be replaced: %s; the whole output is in %s", path.data,
		    error_text(error), temporary.data);
	else
		say("error: %s: not written: %s", path.data, error_text(error));
	buffer_free(&path);
	buffer_free(&temporary);
}

bool output_finish(struct output *output)
{
	bool is_whole;

	write_all(output);
	if (!output->error)
		set_removal(output, FALSE);
	is_whole = !output->error;
	CloseHandle(output->file);
	if (is_whole && !give_name(output))
		output->error = GetLastError();
	if (output->error)
		report_failure(output, output->error, is_whole);
	if (!is_whole)
		DeleteFileW(output->temporary);
	free(output->path);
	free(output->temporary);
	buffer_free(&output->buffer);
	return !output->error;
}

void output_drop(struct output *output)
{
	CloseHandle(output->file);
	DeleteFileW(output->temporary);
	free(output->path);
	free(output->temporary);
	buffer_free(&output->buffer);
}
