// SPDX-License-Identifier: Apache-2.0
/*
 * Response files of a command line. Sources: GCC's manual, "Overall Options"; LINK and CL in
 * Microsoft's documentation; Arm Compiler 5 and 6, "--via"; IAR C/C++ Development Guide, "-f".
 * LLVM's tools quote as Windows does when they run there (llvm/lib/Support/CommandLine.cpp).
 */
#include "response.h"

#include "path.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct response_rule default_rules[] = {
	{ "*", "@", RESPONSE_ATTACHED },
	{ "armcc,armasm,armlink,armar,fromelf", "--via", RESPONSE_SPACE | RESPONSE_EQUAL },
	{ "icc*,iasm*,ilink*,iarchive,xlink,xar", "-f", RESPONSE_SPACE },
	{ "icc*,iasm*,ilink*,iarchive", "--f", RESPONSE_SPACE },
};
const struct response_rules response_default = { default_rules, COUNT(default_rules) };

static const char gnu_programs[] = "gcc,g++,cc,c++,ar,ld,as,*-gcc,*-g++,*-cc,*-c++,*-ar,*-ld,*-as,"
				   "*gcc-*,*g++-*,tcc,collect2,cc1,cc1plus";
static const char llvm_programs[] = "llvm-*,clang*";

struct reader {
	struct text directory;
	const struct response_rules *rules;
	struct response_source source;
	struct text program;
	enum quoting quoting;
	size_t n_files;
	size_t n_bytes;
};

static bool is_in(const char *list, struct text program)
{
	struct words names = { 0 };
	bool found;

	known_split(&names, text_of(list));
	found = known_has(&names, program);
	words_free(&names);
	return found;
}

enum quoting response_quoting(struct text program)
{
	bool is_gnu = is_in(gnu_programs, program) && !is_in(llvm_programs, program);

	return is_gnu ? QUOTING_GNU : QUOTING_WINDOWS;
}

/* Short options differ in case, long ones of Arm's tools do not. */
static bool begins_with(struct text word, struct text option)
{
	struct text start = { word.data, option.len };

	if (word.len < option.len)
		return false;
	return option.len > 2 ? text_same(start, option) :
				!memcmp(word.data, option.data, option.len);
}

/* What names a response file: the name, or that it is the next word. */
struct named {
	struct text name;
	bool is_next;
	bool is_here;
};

static struct named name_by_rule(const struct response_rule *rule, struct text word)
{
	struct text option = text_of(rule->option), rest;

	if (!begins_with(word, option))
		return (struct named){ 0 };
	rest = (struct text){ word.data + option.len, word.len - option.len };
	if (!rest.len)
		return (struct named){ .is_next = rule->forms & RESPONSE_SPACE };
	if (rule->forms & RESPONSE_EQUAL && rest.data[0] == '=' && rest.len > 1)
		return (struct named){ { rest.data + 1, rest.len - 1 }, false, true };
	if (rule->forms & RESPONSE_ATTACHED)
		return (struct named){ rest, false, true };
	return (struct named){ 0 };
}

static struct named name_in(const struct reader *reader, struct text word)
{
	for (size_t i = 0; i < reader->rules->n; i++) {
		const struct response_rule *rule = &reader->rules->rules[i];
		struct named named = name_by_rule(rule, word);

		if ((named.is_here || named.is_next) && is_in(rule->programs, reader->program))
			return named;
	}
	return (struct named){ 0 };
}

static bool inline_file(struct reader *reader, struct text name, int depth, struct buffer *out);

/* The words of a content; those that name a file are replaced by what it holds. */
static void inline_words(struct reader *reader, struct text content, int depth, struct buffer *out)
{
	struct buffer word = { 0 };
	size_t at = 0, start = 0, copied = 0;

	while (next_word(content, reader->quoting, &at, &start, &word)) {
		struct named named = name_in(reader, buffer_text(&word));
		size_t first = start, len = out->len;

		if (named.is_next) {
			word.len = 0;
			if (!next_word(content, reader->quoting, &at, &start, &word))
				break;
			named = (struct named){ buffer_text(&word), false, true };
		}
		if (named.is_here) {
			buffer_add(out, content.data + copied, first - copied);
			if (inline_file(reader, named.name, depth + 1, out))
				copied = at;
			else
				out->len = len;
		}
		word.len = 0;
	}
	buffer_add(out, content.data + copied, content.len - copied);
	buffer_free(&word);
}

static bool inline_file(struct reader *reader, struct text name, int depth, struct buffer *out)
{
	struct buffer path = { 0 }, content = { 0 };
	bool is_read = false;

	if (depth < RESPONSE_MAX_DEPTH && reader->n_files < RESPONSE_MAX_FILES &&
	    reader->n_bytes <= RESPONSE_MAX_BYTES) {
		reader->n_files++;
		path_join(&path, reader->directory, name);
		is_read = reader->source.read(reader->source.context, buffer_text(&path), &content);
	}
	reader->n_bytes += content.len;
	is_read = is_read && reader->n_bytes <= RESPONSE_MAX_BYTES;
	if (is_read)
		inline_words(reader, buffer_text(&content), depth, out);
	buffer_free(&path);
	buffer_free(&content);
	return is_read;
}

static struct reader reader_of(const struct words *arguments, struct text directory,
			       const struct response_rules *rules, struct response_source source)
{
	struct text program = words_count(arguments) ? words_at(arguments, 0) : text_of("");

	return (struct reader){ directory, rules, source, program, response_quoting(program), 0, 0 };
}

/* Inline the file that argument `*i` names, if it does; `*i` is then the last word of the name. */
static bool inline_argument(struct reader *reader, const struct words *arguments, size_t *i,
			    struct buffer *out)
{
	struct named named = name_in(reader, words_at(arguments, *i));

	if (named.is_next && *i + 1 < words_count(arguments)) {
		if (!inline_file(reader, words_at(arguments, *i + 1), 0, out))
			return false;
		++*i;
		return true;
	}
	return named.is_here && inline_file(reader, named.name, 0, out);
}

bool response_text(struct buffer *out, const struct words *arguments, struct text directory,
		   const struct response_rules *rules, struct response_source source)
{
	struct reader reader = reader_of(arguments, directory, rules, source);
	size_t n = words_count(arguments);
	bool found = false;

	for (size_t i = 1; i < n; i++) {
		struct buffer content = { 0 };

		if (inline_argument(&reader, arguments, &i, &content)) {
			if (found)
				buffer_add_char(out, '\n');
			buffer_add_text(out, buffer_text(&content));
			found = true;
		}
		buffer_free(&content);
	}
	return found;
}

static void add_words(struct words *out, struct text content, enum quoting quoting)
{
	struct buffer word = { 0 };
	size_t at = 0, start = 0;

	for (; next_word(content, quoting, &at, &start, &word); word.len = 0)
		words_add(out, buffer_text(&word));
	buffer_free(&word);
}

void response_expand(struct words *out, const struct words *arguments, struct text directory,
		     const struct response_rules *rules, struct response_source source)
{
	struct reader reader = reader_of(arguments, directory, rules, source);
	size_t n = words_count(arguments);

	for (size_t i = 0; i < n; i++) {
		struct buffer content = { 0 };

		if (i && inline_argument(&reader, arguments, &i, &content))
			add_words(out, buffer_text(&content), reader.quoting);
		else
			words_add(out, words_at(arguments, i));
		buffer_free(&content);
	}
}
