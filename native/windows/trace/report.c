// SPDX-License-Identifier: Apache-2.0
/* Messages on standard error, and strings of Windows as text. */
#include "trace/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/wtf8.h"

#define LINE_MAX 4096

struct buffer text_from_wide(const wchar_t *wide, size_t len)
{
	struct buffer out = { 0 };

	wtf8_from_utf16(&out, (const uint16_t *)wide, len);
	buffer_add_char(&out, '\0');
	out.len--;
	return out;
}

wchar_t *wide_from_text(struct text text)
{
	struct buffer out = { 0 };

	wtf8_to_utf16(&out, text);
	buffer_add(&out, L"", sizeof(wchar_t));
	return (wchar_t *)(void *)out.data;
}

static bool print_to_console(HANDLE handle, struct text text)
{
	DWORD mode, n;
	wchar_t *wide;

	if (!GetConsoleMode(handle, &mode))
		return false;
	wide = wide_from_text(text);
	WriteConsoleW(handle, wide, (DWORD)wcslen(wide), &n, NULL);
	free(wide);
	return true;
}

void print_to(DWORD std_handle, struct text text)
{
	HANDLE handle = GetStdHandle(std_handle);
	DWORD n;

	if (!handle || handle == INVALID_HANDLE_VALUE || print_to_console(handle, text))
		return;
	WriteFile(handle, text.data, (DWORD)text.len, &n, NULL);
}

static void print_line(const char *kind, const char *format, va_list args)
{
	char line[LINE_MAX];
	int n = snprintf(line, sizeof(line), "windows-tracer: %s", kind);

	vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	strcat(line, "\n");
	print_to(STD_ERROR_HANDLE, text_of(line));
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line("", format, args);
	va_end(args);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line("error: ", format, args);
	va_end(args);
	ExitProcess(STATUS_ETRACE_FAILED);
}

const char *error_text(DWORD error)
{
	static char shown[512];
	wchar_t wide[256];
	DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
				 error, 0, wide, 256, NULL);
	struct buffer text;

	while (n && (wide[n - 1] == '\n' || wide[n - 1] == '\r' || wide[n - 1] == '.'))
		n--;
	if (!n) {
		snprintf(shown, sizeof(shown), "error %lu", error);
		return shown;
	}
	text = text_from_wide(wide, n);
	snprintf(shown, sizeof(shown), "%s", text.data);
	buffer_free(&text);
	return shown;
}
