// SPDX-License-Identifier: Apache-2.0
/* The command line of windows-tracer. */
#include "trace/options.h"

#include <stdlib.h>

#include "text/command_line.h"
#include "text/path.h"
#include "trace/files.h"
#include "trace/report.h"

#define STATUS_USAGE 1 /* as xcalbuild's tracers have it */

static const char usage[] =
	"usage: windows-tracer [-o FILE] [-c LIST] [-d] [-p] [-h] [--nfsdb FILE] -- command\n"
	"\n"
	"Trace a build and write its build spec.\n"
	"\n"
	"  -o FILE, /o FILE  output file (default: compile_commands.json)\n"
	"  -c LIST           the known programs, between commas; names may be globs\n"
	"  /c FILE           the known programs and their options for response files: xcalbuild's\n"
	"                    configuration, JSON; with an empty list every program is known\n"
	"  -d                write every program, with seven keys\n"
	"  -p                print the known programs, and exit\n"
	"  -h, -?            print this on standard error, and exit; --help: on standard output\n"
	"  --expand          put the words of response files into the arguments\n"
	"  --nfsdb FILE      write event lines for `cas parse`; then a build spec only with -o\n"
	"  --env             event lines have the environment of each process\n"
	"  --no-wait         wait at most a second for processes that outlive the command\n"
	"  --version         print the version, and exit\n"
	"\n"
	"The output appears when the build has ended, whole or not at all. The exit status is that of\n"
	"the command; 1 for -h and for a wrong command line; 125 when the capture failed; 126 and 127\n"
	"when the command cannot be started.\n";

struct reading {
	struct options *options;
	struct words words;
	size_t at; /* of the next word */
};

static void refuse(const char *what, struct text word)
{
	say("error: %s: %.*s (-h shows the options)", what, (int)word.len, word.data);
	ExitProcess(STATUS_USAGE);
}

static bool is_word(struct text word, const char *option)
{
	return word.len == strlen(option) && !memcmp(word.data, option, word.len);
}

static struct text next_value(struct reading *reading, struct text option)
{
	if (reading->at == words_count(&reading->words))
		refuse("the option lacks its value", option);
	if (!words_at(&reading->words, reading->at).len)
		refuse("the option has an empty value", option);
	return words_at(&reading->words, reading->at++);
}

static void read_config(struct reading *reading, struct text name)
{
	struct options *options = reading->options;
	struct buffer content = { 0 };
	const char *problem;
	size_t at;

	if (!file_read(name, RESPONSE_MAX_FILE_BYTES, &content))
		die("%.*s: cannot be read: %s", (int)name.len, name.data, error_text(GetLastError()));
	problem = config_read(&options->config, buffer_text(&content), &at);
	if (problem)
		die("%.*s: byte %lu: %s; docs/capture-windows.md shows the form", (int)name.len,
		    name.data, (unsigned long)at, problem);
	words_free(&options->known);
	options->known = options->config.names;
	options->knows_all = !words_count(&options->known);
	options->rules = (struct response_rules){ options->config.rules, options->config.n_rules };
	buffer_free(&content);
}

static void print_and_end(DWORD std_handle, struct text text, UINT status)
{
	print_to(std_handle, text);
	ExitProcess(status);
}

static void print_known(const struct options *options)
{
	struct buffer out = { 0 };
	size_t n = words_count(&options->known);

	buffer_add_text(&out, text_of("Known compilers:\n"));
	for (size_t i = 0; i < n; i++) {
		buffer_add_text(&out, text_of("  "));
		buffer_add_text(&out, words_at(&options->known, i));
		buffer_add_char(&out, '\n');
	}
	print_and_end(STD_OUTPUT_HANDLE, buffer_text(&out), 0);
}

static void set_known(struct options *options, struct text list)
{
	words_free(&options->known);
	options->known = (struct words){ 0 };
	known_split(&options->known, list);
	options->knows_all = false;
}

static bool read_value_option(struct reading *reading, struct text word)
{
	struct options *options = reading->options;

	if (is_word(word, "-o") || is_word(word, "/o"))
		options->output = wide_from_text(next_value(reading, word));
	else if (is_word(word, "-c"))
		set_known(options, next_value(reading, word));
	else if (is_word(word, "/c"))
		read_config(reading, next_value(reading, word));
	else if (is_word(word, "--nfsdb"))
		options->trace = wide_from_text(next_value(reading, word));
	else
		return false;
	return true;
}

static void read_option(struct reading *reading, struct text word)
{
	struct options *options = reading->options;

	if (read_value_option(reading, word))
		return;
	if (is_word(word, "-d"))
		options->is_debug = true;
	else if (is_word(word, "--env"))
		options->has_environment = true;
	else if (is_word(word, "--expand"))
		options->expands = true;
	else if (is_word(word, "--no-wait"))
		options->no_wait = true;
	else if (is_word(word, "-p"))
		print_known(options);
	else if (is_word(word, "-h") || is_word(word, "-?") || is_word(word, "/?"))
		print_and_end(STD_ERROR_HANDLE, text_of(usage), STATUS_USAGE);
	else if (is_word(word, "--help"))
		print_and_end(STD_OUTPUT_HANDLE, text_of(usage), 0);
	else if (is_word(word, "--version"))
		print_and_end(STD_OUTPUT_HANDLE, text_of("windows-tracer " ETRACE_VERSION "\n"), 0);
	else
		refuse("unknown option", word);
}

/* One output would replace the other at the end of the build. */
static void refuse_same_file(const struct options *options)
{
	size_t len;

	if (!options->output || !options->trace)
		return;
	len = wcslen(options->trace);
	if (!_wcsnicmp(options->output, options->trace, len) &&
	    (!options->output[len] || !_wcsicmp(options->output + len, RESPONSES_SUFFIX)))
		refuse("-o and --nfsdb name one file", text_of("give each its own"));
}

/* The command is handed on as it was typed: its quotes are not ours to remake. */
static wchar_t *command_from(struct text line, size_t n_words)
{
	size_t at = command_line_offset(line, n_words);

	return wide_from_text((struct text){ line.data + at, line.len - at });
}

void options_read(struct options *options)
{
	const wchar_t *wide = GetCommandLineW();
	struct buffer line = text_from_wide(wide, wcslen(wide));
	struct reading reading = { .options = options, .at = 1 };

	*options = (struct options){ .rules = response_default };
	known_split(&options->known, text_of(known_default));
	command_line_split(&reading.words, buffer_text(&line));
	while (reading.at < words_count(&reading.words)) {
		struct text word = words_at(&reading.words, reading.at);

		if (is_word(word, "--")) {
			reading.at++;
			break;
		}
		if (!word.len || (word.data[0] != '-' && word.data[0] != '/'))
			break;
		reading.at++;
		read_option(&reading, word);
	}
	if (reading.at >= words_count(&reading.words))
		refuse("no command to trace", text_of("give one after --"));
	if (!options->output && !options->trace)
		options->output = wide_from_text(text_of("compile_commands.json"));
	refuse_same_file(options);
	options->command = command_from(buffer_text(&line), reading.at);
	words_free(&reading.words);
	buffer_free(&line);
}
