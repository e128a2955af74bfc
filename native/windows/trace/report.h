/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error, and strings of Windows as text. */
#ifndef WINDOWS_REPORT_H
#define WINDOWS_REPORT_H

#include <stdio.h> /* __MINGW_PRINTF_FORMAT */
#include <windows.h>

#include "text/buffer.h"

/* `windows-tracer: `, the text and a newline. */
void say(const char *format, ...) __attribute__((format(__MINGW_PRINTF_FORMAT, 1, 2)));
/* say() with `error: ` before it, and the end with STATUS_ETRACE_FAILED. */
void die(const char *format, ...) __attribute__((format(__MINGW_PRINTF_FORMAT, 1, 2), noreturn));
/* What Windows says about an error of GetLastError(), in a buffer that the next call overwrites. */
const char *error_text(DWORD error);
/* To standard output or error, as a console shows it. */
void print_to(DWORD std_handle, struct text text);

/* A null byte follows the text in memory. */
struct buffer text_from_wide(const wchar_t *wide, size_t len);
/* Null-terminated; the caller frees it. */
wchar_t *wide_from_text(struct text text);

#endif /* WINDOWS_REPORT_H */
