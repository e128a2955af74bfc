// SPDX-License-Identifier: Apache-2.0
/* Every function of native/windows/text on one input, for tests and fuzzing; answers are bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "command_line.h"
#include "config.h"
#include "lines.h"
#include "path.h"
#include "response.h"
#include "spec.h"
#include "wtf8.h"

/* What the response files hold: pairs of path and content. */
struct files {
	const struct words *words;
};

static bool read_file(void *context, struct text path, struct buffer *content)
{
	const struct files *files = context;

	for (size_t i = 0; i + 1 < words_count(files->words); i += 2) {
		struct text name = words_at(files->words, i);

		if (name.len == path.len && !memcmp(name.data, path.data, path.len)) {
			buffer_add_text(content, words_at(files->words, i + 1));
			return true;
		}
	}
	return false;
}

/* Words of an input, between null bytes. */
static void cut(struct words *out, struct text text)
{
	size_t start = 0;

	for (size_t at = 0; at < text.len; at++) {
		if (text.data[at])
			continue;
		words_add(out, (struct text){ text.data + start, at - start });
		start = at + 1;
	}
}

static void answer_words(struct buffer *out, struct words *words)
{
	buffer_add_text(out, buffer_text(&words->bytes));
	words_free(words);
}

static void config_answer(struct buffer *out, struct text text)
{
	struct config config;
	size_t at;
	const char *problem = config_read(&config, text, &at);

	if (problem) {
		buffer_add_text(out, text_of(problem));
		buffer_add_char(out, '@');
		buffer_add_number(out, at);
	} else {
		buffer_add_text(out, buffer_text(&config.names.bytes));
		for (size_t i = 0; i < config.n_rules; i++) {
			buffer_add_text(out, text_of(config.rules[i].programs));
			buffer_add_char(out, ' ');
			buffer_add_text(out, text_of(config.rules[i].option));
			buffer_add_char(out, ' ');
			buffer_add_number(out, config.rules[i].forms);
			buffer_add_char(out, '\n');
		}
	}
	config_free(&config);
}

/* Directory, number of arguments in a byte, arguments, then files. */
static void response_answer(struct buffer *out, struct text text, bool expands)
{
	struct words all = { 0 }, arguments = { 0 }, files = { 0 }, expanded = { 0 };
	struct files context = { &files };
	struct response_source source = { read_file, &context };
	size_t n, i;

	cut(&all, text);
	if (words_count(&all) < 2) {
		words_free(&all);
		return;
	}
	n = words_at(&all, 1).len;
	for (i = 2; i < words_count(&all) && i < 2 + n; i++)
		words_add(&arguments, words_at(&all, i));
	for (; i < words_count(&all); i++)
		words_add(&files, words_at(&all, i));
	if (!expands)
		response_text(out, &arguments, words_at(&all, 0), &response_default, source);
	else
		response_expand(&expanded, &arguments, words_at(&all, 0), &response_default, source);
	answer_words(out, &expanded);
	words_free(&all);
	words_free(&arguments);
	words_free(&files);
}

static void spec_answer(struct buffer *out, struct text text, bool is_debug)
{
	struct words words = { 0 };
	struct spec_item item = { 12, 0, text_of("C:\\w"), &words, text, true, true };

	cut(&words, text);
	spec_put(out, &item, is_debug, true);
	spec_put(out, &item, is_debug, false);
	spec_end(out, false);
	words_free(&words);
}

static void lines_answer(struct buffer *out, struct text text)
{
	struct words words = { 0 };
	struct lines_exec exec = { text, text, text_of("C:\\w"), &words };
	int64_t upid = lines_upid(2, 12);

	cut(&words, text);
	lines_begin(out, text_of("C:\\w"));
	lines_fork(out, lines_upid(1, 8), 5, upid);
	lines_exec(out, upid, 1000000007, &exec);
	lines_exit(out, upid, 2000000000, (uint32_t)text.len);
	lines_variable(out, &upid, 1, 7, text);
	words_free(&words);
}

static void join_answer(struct buffer *out, struct text text)
{
	struct words words = { 0 };

	cut(&words, text);
	if (words_count(&words) == 2)
		path_join(out, words_at(&words, 0), words_at(&words, 1));
	words_free(&words);
}

static void utf16_answer(struct buffer *out, struct text text)
{
	struct buffer units = { 0 };

	buffer_add_text(&units, text);
	if (text.len)
		wtf8_from_utf16(out, (const uint16_t *)(const void *)units.data, text.len / 2);
	buffer_free(&units);
}

static void split_answer(struct buffer *out, struct text text, enum quoting quoting)
{
	struct words words = { 0 };
	struct buffer word = { 0 };
	size_t at = 0, start = 0;

	for (; next_word(text, quoting, &at, &start, &word); word.len = 0)
		words_add(&words, buffer_text(&word));
	buffer_free(&word);
	answer_words(out, &words);
}

static void names_answer(struct buffer *out, struct text text)
{
	struct words names = { 0 };

	known_split(&names, text_of(known_default));
	buffer_add_char(out, known_has(&names, text) ? '1' : '0');
	buffer_add_char(out, path_is_plain(text) ? '1' : '0');
	buffer_add_char(out, response_quoting(text) == QUOTING_GNU ? 'g' : 'w');
	buffer_add_text(out, path_program(text));
	buffer_add_char(out, '\0');
	buffer_add_text(out, path_directory(text));
	buffer_add_char(out, '\0');
	path_add_plain(out, text);
	words_free(&names);
}

#define N_ANSWERS 16

static void answer(struct buffer *out, unsigned int which, struct text text)
{
	struct words words = { 0 };

	switch (which) {
	case 0:
		command_line_split(&words, text);
		answer_words(out, &words);
		break;
	case 1:
		buffer_add_number(out, command_line_offset(text, 2));
		break;
	case 2:
	case 3:
		split_answer(out, text, which == 2 ? QUOTING_WINDOWS : QUOTING_GNU);
		break;
	case 4:
		utf16_answer(out, text);
		break;
	case 5:
		wtf8_to_utf16(out, text);
		break;
	case 6:
		wtf8_from_file(out, text);
		break;
	case 7:
		json_string(out, text);
		break;
	case 8:
	case 9:
		spec_answer(out, text, which == 9);
		break;
	case 10:
		config_answer(out, text);
		break;
	case 11:
	case 12:
		response_answer(out, text, which == 12);
		break;
	case 13:
		lines_answer(out, text);
		break;
	case 14:
		join_answer(out, text);
		break;
	case 15:
		names_answer(out, text);
		break;
	}
}

#ifdef FUZZ
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer out = { 0 };

	if (size)
		answer(&out, data[0] % N_ANSWERS, (struct text){ (const char *)data + 1, size - 1 });
	buffer_free(&out);
	return 0;
}
#else
#include <stdio.h>

/* Requests on standard input: which, length (both native u32), bytes. Answers: length, bytes. */
int main(void)
{
	uint32_t head[2];

	while (fread(head, sizeof(head), 1, stdin) == 1) {
		char *bytes = malloc(head[1] + !head[1]);
		struct buffer out = { 0 };
		uint32_t len;

		if (fread(bytes, 1, head[1], stdin) != head[1])
			return 1;
		answer(&out, head[0], (struct text){ bytes, head[1] });
		len = (uint32_t)out.len;
		fwrite(&len, sizeof(len), 1, stdout);
		fwrite(out.data ? out.data : "", 1, out.len, stdout);
		fflush(stdout);
		buffer_free(&out);
		free(bytes);
	}
	return 0;
}
#endif
