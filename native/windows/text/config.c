// SPDX-License-Identifier: Apache-2.0
/* xcalbuild's configuration of tools: a reader of as much JSON as it has. */
#include "config.h"

#include <stdlib.h>

#include "wtf8.h"

#define MAX_DEPTH 64

struct json {
	struct text text;
	size_t at;
	const char *problem;
	int depth;
};

/* What is read of a tool and of one of its options. */
struct tool {
	struct config *config;
	struct buffer binary;
	struct buffer option;
	unsigned int forms;
};

typedef void read_value(struct json *json, struct tool *tool);
typedef void read_member(struct json *json, struct tool *tool, struct text key);

static void skip_value(struct json *json);

static char peek(struct json *json)
{
	while (json->at < json->text.len && strchr(" \t\r\n", json->text.data[json->at]) &&
	       json->text.data[json->at])
		json->at++;
	return json->at < json->text.len ? json->text.data[json->at] : '\0';
}

static void fail(struct json *json, const char *problem)
{
	if (!json->problem)
		json->problem = problem;
}

static bool take(struct json *json, char c, const char *problem)
{
	if (!json->problem && peek(json) == c) {
		json->at++;
		return true;
	}
	fail(json, problem);
	return false;
}

static void take_escape(struct json *json, struct buffer *out)
{
	static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	char c = json->at < json->text.len ? json->text.data[json->at] : '\0';
	const char *found = c ? strchr(letters, c) : NULL;
	uint16_t unit = 0;

	if (found) {
		buffer_add_char(out, bytes[found - letters]);
		json->at++;
		return;
	}
	if (c != 'u' || json->text.len - json->at < 5) {
		fail(json, "no JSON escape");
		return;
	}
	for (int i = 1; i < 5; i++) {
		static const char digits[] = "0123456789abcdef";
		char digit = json->text.data[json->at + i];
		const char *value = digit ? strchr(digits, digit | 0x20) : NULL;

		if (!value) {
			fail(json, "no JSON escape");
			return;
		}
		unit = (uint16_t)(unit << 4 | (value - digits));
	}
	json->at += 5;
	wtf8_from_utf16(out, &unit, 1);
}

static void take_string(struct json *json, struct buffer *out)
{
	if (!take(json, '"', "expected a string"))
		return;
	while (!json->problem && json->at < json->text.len && json->text.data[json->at] != '"') {
		char c = json->text.data[json->at++];

		if (c == '\\')
			take_escape(json, out);
		else
			buffer_add_char(out, c);
	}
	take(json, '"', "the string has no end");
}

static void take_list(struct json *json, read_value *read, struct tool *tool)
{
	if (!take(json, '[', "expected a list") || ++json->depth > MAX_DEPTH)
		fail(json, "lists are too deep");
	while (!json->problem && peek(json) != ']') {
		read(json, tool);
		if (peek(json) != ']')
			take(json, ',', "expected a comma or the end of the list");
	}
	json->depth--;
	take(json, ']', "the list has no end");
}

static void take_object(struct json *json, read_member *read, struct tool *tool)
{
	struct buffer key = { 0 };

	if (!take(json, '{', "expected an object") || ++json->depth > MAX_DEPTH)
		fail(json, "objects are too deep");
	while (!json->problem && peek(json) != '}') {
		key.len = 0;
		take_string(json, &key);
		take(json, ':', "expected a colon");
		if (!json->problem)
			read(json, tool, buffer_text(&key));
		if (peek(json) != '}')
			take(json, ',', "expected a comma or the end of the object");
	}
	json->depth--;
	take(json, '}', "the object has no end");
	buffer_free(&key);
}

static void skip_item(struct json *json, struct tool *tool)
{
	(void)tool;
	skip_value(json);
}

static void skip_member(struct json *json, struct tool *tool, struct text key)
{
	(void)key;
	skip_item(json, tool);
}

static void skip_value(struct json *json)
{
	struct buffer string = { 0 };
	size_t start;

	switch (peek(json)) {
	case '"':
		take_string(json, &string);
		buffer_free(&string);
		return;
	case '[':
		take_list(json, skip_item, NULL);
		return;
	case '{':
		take_object(json, skip_member, NULL);
		return;
	}
	start = json->at; /* a number, true, false, null */
	while (json->at < json->text.len && !strchr(",]}: \t\r\n", json->text.data[json->at]))
		json->at++;
	if (json->at == start)
		fail(json, "expected a value");
}

static void read_form(struct json *json, struct tool *tool)
{
	struct buffer name = { 0 };

	take_string(json, &name);
	if (text_same(buffer_text(&name), text_of("attached")))
		tool->forms |= RESPONSE_ATTACHED;
	else if (text_same(buffer_text(&name), text_of("space")))
		tool->forms |= RESPONSE_SPACE;
	else if (text_same(buffer_text(&name), text_of("equal")))
		tool->forms |= RESPONSE_EQUAL;
	else
		fail(json, "argFormat is not attached, space or equal");
	buffer_free(&name);
}

static void read_option_member(struct json *json, struct tool *tool, struct text key)
{
	if (text_same(key, text_of("argument")))
		take_string(json, &tool->option);
	else if (text_same(key, text_of("argFormat")))
		take_list(json, read_form, tool);
	else
		skip_value(json);
}

static void read_option(struct json *json, struct tool *tool)
{
	struct config *config = tool->config;

	tool->option.len = 0;
	tool->forms = 0;
	take_object(json, read_option_member, tool);
	if (!json->problem && !tool->option.len)
		fail(json, "the option has no \"argument\""); /* every word would begin with it */
	if (json->problem)
		return;
	words_add(&config->strings, buffer_text(&tool->option));
	config->rules = must_realloc(config->rules, (config->n_rules + 1) * sizeof(*config->rules));
	config->rules[config->n_rules++] = (struct response_rule){ NULL, NULL, tool->forms };
}

static void read_tool_member(struct json *json, struct tool *tool, struct text key)
{
	if (text_same(key, text_of("binary")))
		take_string(json, &tool->binary);
	else if (text_same(key, text_of("responseFileArgs")))
		take_list(json, read_option, tool);
	else
		skip_value(json);
}

/* The strings move while more are added: `strings` has program and option of rule i at 2i. */
static void read_tool(struct json *json, struct tool *tool)
{
	struct config *config = tool->config;
	struct words options = config->strings;
	size_t first = config->n_rules;

	config->strings = (struct words){ 0 };
	tool->binary.len = 0;
	take_object(json, read_tool_member, tool);
	for (size_t i = first; i < config->n_rules && !json->problem; i++) {
		words_add(&options, buffer_text(&tool->binary));
		words_add(&options, words_at(&config->strings, i - first));
	}
	words_free(&config->strings);
	config->strings = options;
	if (!json->problem && !tool->binary.len)
		fail(json, "the tool has no \"binary\"");
	if (!json->problem)
		words_add(&config->names, buffer_text(&tool->binary));
}

const char *config_read(struct config *config, struct text text, size_t *at)
{
	struct tool tool = { .config = config };
	struct json json = { .text = text };

	*config = (struct config){ 0 };
	take_list(&json, read_tool, &tool);
	if (!json.problem && peek(&json) != '\0')
		fail(&json, "expected the end of the file");
	if (!json.problem && json.at != text.len)
		fail(&json, "a null byte");
	for (size_t i = 0; i < config->n_rules && !json.problem; i++) {
		config->rules[i].programs = words_at(&config->strings, 2 * i).data;
		config->rules[i].option = words_at(&config->strings, 2 * i + 1).data;
	}
	buffer_free(&tool.binary);
	buffer_free(&tool.option);
	*at = json.at;
	return json.problem;
}

void config_free(struct config *config)
{
	words_free(&config->names);
	words_free(&config->strings);
	free(config->rules);
}
