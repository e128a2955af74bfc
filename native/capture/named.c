// SPDX-License-Identifier: Apache-2.0
/*
 * Which programs read response files, by the tables of etrace/compilers, and the files that a command
 * names, on its command line and in these files. Each file is taken once and their number has a
 * limit, for a file may name itself, a hundred thousand times. Part of the preload library too:
 * nothing of libc is used, and nothing is allocated.
 */
#include "capture/named.h"

#include "capture/tool_names.h"

/* ---- tools ---- */

/* As strcmp(), of a text with a length and one with an end. */
static int compare(const char *text, size_t len, const char *name)
{
	size_t i;

	for (i = 0; i < len && text[i] == name[i] && name[i]; i++)
		;
	return (i < len ? (unsigned char)text[i] : 0) - (unsigned char)name[i];
}

static const struct tool_name *find_listed(const char *text, size_t len)
{
	size_t first = 0;
	size_t end = N_OF(tool_names);

	while (len && first < end) {
		size_t middle = first + (end - first) / 2;
		int order = compare(text, len, tool_names[middle].name);

		if (!order)
			return &tool_names[middle];
		if (order < 0)
			end = middle;
		else
			first = middle + 1;
	}
	return NULL;
}

/* Where the last of these letters is, or `len`. */
static size_t find_last(const char *text, size_t len, char letter)
{
	size_t i = len;

	while (i && text[i - 1] != letter)
		i--;
	return i ? i - 1 : len;
}

static bool is_version(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (text[i] != '.' && (text[i] < '0' || text[i] > '9'))
			return false;
	return len > 0;
}

/* The last component of a path. */
static const char *file_name(const char *path, size_t *len)
{
	size_t slash = find_last(path, *len, '/');

	if (slash == *len)
		return path;
	*len -= slash + 1;
	return path + slash + 1;
}

static const struct tool_name *find_tool(const char *name, size_t n)
{
	size_t dash = find_last(name, n, '-');
	const struct tool_name *tool;
	size_t at;

	if (dash < n && is_version(name + dash + 1, n - dash - 1))
		n = dash;
	tool = find_listed(name, n);
	for (at = 0; !tool && at < n; at++)
		if (name[at] == '-')
			tool = find_listed(name + at + 1, n - at - 1);
	return tool;
}

/* Whether a pattern, in which `*` is any text, is that of a name. */
static bool matches(const char *pattern, const char *text, size_t len)
{
	const char *star = NULL;
	size_t at = 0;
	size_t from = 0;

	while (at < len) {
		if (*pattern == '*') {
			star = pattern++;
			from = at;
		} else if (*pattern == text[at]) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star + 1;
			at = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static const struct runner *find_runner(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < N_OF(runners); i++)
		if (matches(runners[i].name, name, len))
			return &runners[i];
	return NULL;
}

static bool takes_value(const struct runner *runner, const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < N_OF(runner_options); i++)
		if (runner_options[i].group == runner->group &&
		    !compare(word, len, runner_options[i].text))
			return true;
	return false;
}

/* ---- words of a command ---- */

static void find_program(struct naming *naming, const char *word, size_t len)
{
	const char *name = file_name(word, &len);
	const struct tool_name *tool = find_tool(name, len);

	naming->runner = tool ? NULL : find_runner(name, len);
	naming->state = tool ? NAMING_TOOL : naming->runner ? NAMING_RUNNER : NAMING_NONE;
	if (tool) {
		naming->form = tool->form;
		naming->group = tool->group;
	} else if (naming->runner) {
		naming->form = naming->runner->form;
	}
}

/* The words of a program that runs another one in its own process, up to that one's name. */
static void skip_word(struct naming *naming, const char *word, size_t len)
{
	if (naming->skips)
		naming->skips = false;
	else if (len > 1 && word[0] == '-')
		naming->skips = takes_value(naming->runner, word, len);
	else
		find_program(naming, word, len);
}

static void choose_form(struct naming *naming, const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < N_OF(form_choices); i++)
		if (form_choices[i].from == naming->form &&
		    !compare(word, len, form_choices[i].option)) {
			naming->form = form_choices[i].to;
			return;
		}
}

static bool begins_with(const char *word, size_t len, const char *start)
{
	for (; len && *start && *word == *start; word++, start++)
		len--;
	return len && !*start;
}

static const char *name_by_option(struct naming *naming, const char *word, size_t *len)
{
	const struct response_option *option;
	size_t i;

	for (i = 0; i < N_OF(response_options); i++) {
		option = &response_options[i];
		if (option->group != naming->group)
			continue;
		if (!option->is_joined) {
			naming->takes_next |= !compare(word, *len, option->text);
		} else if (begins_with(word, *len, option->text)) {
			for (; word[0] != '='; word++)
				--*len;
			--*len;
			return word + 1;
		}
	}
	return NULL;
}

static const char *name_in(struct naming *naming, const char *word, size_t *len)
{
	if (naming->takes_next) {
		naming->takes_next = false;
		return word;
	}
	if (*len > 1 && word[0] == '@') {
		if (response_forms[naming->form].is_doubled && word[1] == '@')
			return NULL;
		--*len;
		return word + 1;
	}
	return naming->group ? name_by_option(naming, word, len) : NULL;
}

const char *naming_next(struct naming *naming, const char *word, size_t *len)
{
	switch (naming->state) {
	case NAMING_PROGRAM:
		find_program(naming, word, *len);
		return NULL;
	case NAMING_RUNNER:
		if (naming->runner->reads_files && *len > 1 && word[0] == '@') {
			naming->state = NAMING_TOOL; /* the file may name the program */
			return name_in(naming, word, len);
		}
		skip_word(naming, word, *len);
		return NULL;
	case NAMING_TOOL:
		choose_form(naming, word, *len);
		return name_in(naming, word, len);
	default:
		return NULL;
	}
}

/* ---- names ---- */

/* FNV-1a */
static uint64_t hash_name(const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	while (len--)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3;
	return hash;
}

/* Whether it is new. Only accepted names are remembered, so `seen` never fills. */
static bool is_first(struct named *named, const char *name, size_t len)
{
	uint64_t hash = hash_name(name, len) | 1;
	size_t at = (size_t)(hash / 2) % N_SEEN;

	while (named->seen[at] && named->seen[at] != hash)
		at = (at + 1) % N_SEEN;
	if (named->seen[at])
		return false;
	if (named->n < MAX_NAMES)
		named->seen[at] = hash;
	return true;
}

/* A name below /proc/self/cwd is one in the working directory; for the tracer it would be another. */
static const char *below_cwd(const char *name, size_t *len)
{
	static const char starts[][24] = { "/proc/self/cwd/", "/proc/thread-self/cwd/" };
	const char *end = name + *len;
	size_t i;

	for (i = 0; i < N_OF(starts); i++) {
		if (!begins_with(name, *len, starts[i]))
			continue;
		name += sizeof("/proc/self/cwd") - 1 + (i ? sizeof("thread-") - 1 : 0);
		while (name < end && *name == '/')
			name++;
		*len = (size_t)(end - name);
		i = (size_t)-1;
	}
	return name;
}

static void put_path(char *path, const char *cwd, const char *name, size_t len)
{
	size_t n = 0;
	size_t i;

	name = below_cwd(name, &len);
	for (; !(len && name[0] == '/') && cwd[n] && n < PATH_MAX; n++)
		path[n] = cwd[n];
	if (n && path[n - 1] != '/')
		path[n++] = '/';
	for (i = 0; i < len; i++)
		path[n++] = name[i];
	path[n] = '\0';
}

size_t named_add(struct named *named, const char *cwd, const char *name, size_t len)
{
	if (len > PATH_MAX || (!*cwd && *name != '/'))
		return 1;
	if (!is_first(named, name, len))
		return 0;
	if (named->n == MAX_NAMES)
		return 1;
	put_path(named->paths[named->n++], cwd, name, len);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The words are split as libiberty's buildargv() does. */
/* Words of a text, byte by byte, as libiberty and LLVM split them. */
struct splitter {
	struct named *named;
	struct naming naming;
	const char *cwd;
	size_t n_missed;
	size_t n; /* bytes of the word */
	size_t n_backslashes; /* not in the word yet, of Windows */
	char quote;
	bool is_word;
	bool is_escaped;
};

static void end_word(struct splitter *splitter)
{
	size_t len = splitter->n;
	const char *name;

	if (splitter->is_word) {
		name = name_in(&splitter->naming, splitter->named->word, &len);
		if (name && len)
			splitter->n_missed += named_add(splitter->named, splitter->cwd, name, len);
	}
	splitter->n = 0;
	splitter->is_word = false;
}

/* What a text in UTF-16 is in UTF-8 may be half as long again. */
static void put_byte(struct splitter *splitter, char byte)
{
	if (splitter->n < RESPONSE_FILE_BYTES)
		splitter->named->word[splitter->n++] = byte;
}

static void split_gnu(struct splitter *splitter, char byte)
{
	if (splitter->is_escaped)
		splitter->is_escaped = false;
	else if (byte == '\\') {
		splitter->is_word = splitter->is_escaped = true;
		return;
	} else if (splitter->quote ? byte == splitter->quote : byte == '\'' || byte == '"') {
		splitter->quote = splitter->quote ? '\0' : byte;
		splitter->is_word = true;
		return;
	} else if (!splitter->quote && is_blank(byte)) {
		end_word(splitter);
		return;
	}
	splitter->is_word = true;
	put_byte(splitter, byte);
}

static void put_backslashes(struct splitter *splitter, size_t n)
{
	while (n--)
		put_byte(splitter, '\\');
}

/* A quote after a backslash, or after another one within quotes, is literal. */
static void split_windows_quote(struct splitter *splitter, size_t n_backslashes)
{
	bool was_closed = splitter->is_escaped;

	put_backslashes(splitter, n_backslashes / 2);
	splitter->is_word = true;
	splitter->is_escaped = false;
	if (n_backslashes % 2) {
		put_byte(splitter, '"');
	} else if (splitter->quote) {
		splitter->quote = '\0';
		splitter->is_escaped = true;
	} else {
		splitter->quote = '"';
		if (was_closed && !n_backslashes)
			put_byte(splitter, '"');
	}
}

/* `is_escaped`: the byte before closed quotes. */
static void split_windows(struct splitter *splitter, char byte)
{
	size_t n = splitter->n_backslashes;

	if (byte == '\\') {
		splitter->n_backslashes++;
		splitter->is_word = true;
		return;
	}
	splitter->n_backslashes = 0;
	if (byte == '"') {
		split_windows_quote(splitter, n);
		return;
	}
	put_backslashes(splitter, n);
	splitter->is_escaped = false;
	if (!splitter->quote && is_blank(byte)) {
		end_word(splitter);
		return;
	}
	splitter->is_word = true;
	put_byte(splitter, byte);
}

static void split_byte(struct splitter *splitter, char byte)
{
	if (response_forms[splitter->naming.form].quoting == QUOTING_WINDOWS)
		split_windows(splitter, byte);
	else
		split_gnu(splitter, byte);
}

static void split_code(struct splitter *splitter, uint32_t code)
{
	if (code < 0x80) {
		split_byte(splitter, (char)code);
		return;
	}
	if (code >= 0x10000)
		split_byte(splitter, (char)(0xf0 | code >> 18));
	if (code >= 0x800)
		split_byte(splitter, (char)((code >= 0x10000 ? 0x80 | (code >> 12 & 0x3f) :
							      0xe0 | code >> 12)));
	split_byte(splitter, (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6));
	split_byte(splitter, (char)(0x80 | (code & 0x3f)));
}

static uint32_t unit_at(const char *text, bool is_big)
{
	const unsigned char *bytes = (const unsigned char *)text;

	return is_big ? (uint32_t)bytes[0] << 8 | bytes[1] : (uint32_t)bytes[1] << 8 | bytes[0];
}

static void split_utf16(struct splitter *splitter, const char *text, size_t len, bool is_big)
{
	size_t i;

	for (i = 0; i + 1 < len; i += 2) {
		uint32_t code = unit_at(text + i, is_big);

		if (code >= 0xd800 && code < 0xdc00 && i + 3 < len) {
			i += 2;
			code = 0x10000 + ((code & 0x3ff) << 10) +
			       (unit_at(text + i, is_big) & 0x3ff);
		}
		split_code(splitter, code);
	}
}

static void split_text(struct splitter *splitter, const char *text, size_t len)
{
	bool is_unicode = response_forms[splitter->naming.form].is_unicode;
	size_t i = is_unicode && begins_with(text, len, "\xef\xbb\xbf") ? 3 : 0;

	if (is_unicode && (begins_with(text, len, "\xff\xfe") || begins_with(text, len, "\xfe\xff")))
		split_utf16(splitter, text + 2, len - 2, text[0] == '\xfe');
	else
		for (; i < len; i++)
			split_byte(splitter, text[i]);
	put_backslashes(splitter, splitter->n_backslashes);
	end_word(splitter);
}

size_t named_add_nested(struct named *named, const struct naming *naming, const char *cwd,
			const char *text, size_t len)
{
	const struct response_form *form = &response_forms[naming->form];
	struct splitter splitter = { .named = named, .naming = *naming, .cwd = cwd };

	if (!form->is_nested || form->quoting == QUOTING_OTHER)
		return 0;
	splitter.naming.takes_next = false;
	split_text(&splitter, text, len);
	return splitter.n_missed;
}

void named_clear(struct named *named)
{
	size_t i;

	named->n = 0;
	for (i = 0; i < N_SEEN; i++)
		named->seen[i] = 0;
}
