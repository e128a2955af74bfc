// SPDX-License-Identifier: Apache-2.0
/* A command line of Windows, or a response file, -> arguments. */
#include "command_line.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
	return is_blank(c) || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* The program's name: quotes group, and a backslash is one. */
static void take_name(struct text line, size_t *at, struct buffer *word)
{
	bool is_quoted = false;

	for (; *at < line.len && (is_quoted || !is_blank(line.data[*at])); ++*at) {
		if (line.data[*at] == '"')
			is_quoted = !is_quoted;
		else
			buffer_add_char(word, line.data[*at]);
	}
}

static size_t count_backslashes(struct text line, size_t at)
{
	size_t n = 0;

	while (at + n < line.len && line.data[at + n] == '\\')
		n++;
	return n;
}

static void add_backslashes(struct buffer *word, size_t n)
{
	while (n--)
		buffer_add_char(word, '\\');
}

/* Take backslashes and, when they are before a quote, what they mean. */
static void take_backslashes(struct text line, size_t *at, struct buffer *word)
{
	size_t n = count_backslashes(line, *at);

	*at += n;
	if (*at == line.len || line.data[*at] != '"') {
		add_backslashes(word, n);
		return;
	}
	add_backslashes(word, n / 2);
	if (n % 2) {
		buffer_add_char(word, '"');
		++*at;
	}
}

static void take_windows(struct text line, bool (*ends)(char), size_t *at, struct buffer *word)
{
	bool is_quoted = false;

	while (*at < line.len && (is_quoted || !ends(line.data[*at]))) {
		char c = line.data[*at];

		if (c == '\\') {
			take_backslashes(line, at, word);
			continue;
		}
		++*at;
		if (c != '"') {
			buffer_add_char(word, c);
		} else if (is_quoted && *at < line.len && line.data[*at] == '"') {
			buffer_add_char(word, '"');
			++*at;
		} else {
			is_quoted = !is_quoted;
		}
	}
}

static void take_gnu(struct text text, size_t *at, struct buffer *word)
{
	char quote = '\0';

	for (; *at < text.len && (quote || !is_space(text.data[*at])); ++*at) {
		char c = text.data[*at];

		if (c == '\\') {
			if (++*at == text.len)
				return;
			buffer_add_char(word, text.data[*at]);
		} else if (quote ? c == quote : c == '"' || c == '\'') {
			quote = quote ? '\0' : c;
		} else {
			buffer_add_char(word, c);
		}
	}
}

static void skip(struct text text, bool (*is_between)(char), size_t *at)
{
	while (*at < text.len && is_between(text.data[*at]))
		++*at;
}

void command_line_split(struct words *out, struct text line)
{
	struct buffer word = { 0 };
	size_t at = 0;

	if (!line.len)
		return;
	take_name(line, &at, &word);
	words_add(out, buffer_text(&word));
	for (skip(line, is_blank, &at); at < line.len; skip(line, is_blank, &at)) {
		word.len = 0;
		take_windows(line, is_blank, &at, &word);
		words_add(out, buffer_text(&word));
	}
	buffer_free(&word);
}

size_t command_line_offset(struct text line, size_t i)
{
	struct buffer word = { 0 };
	size_t at = 0;

	if (!i)
		return 0;
	take_name(line, &at, &word);
	for (skip(line, is_blank, &at); at < line.len && --i; skip(line, is_blank, &at))
		take_windows(line, is_blank, &at, &word);
	buffer_free(&word);
	return at;
}

bool next_word(struct text text, enum quoting quoting, size_t *at, size_t *start,
	       struct buffer *word)
{
	skip(text, is_space, at);
	if (*at == text.len)
		return false;
	*start = *at;
	if (quoting == QUOTING_GNU)
		take_gnu(text, at, word);
	else
		take_windows(text, is_space, at, word);
	return true;
}
