// SPDX-License-Identifier: Apache-2.0
/* Programs that began and ended -> the build spec, the event lines, the saved response files. */
#include "trace/record.h"

#include <stdlib.h>

#include "text/command_line.h"
#include "text/lines.h"
#include "text/path.h"
#include "text/spec.h"
#include "trace/files.h"
#include "trace/report.h"

#define NS_PER_SECOND 1000000000ull
#define RESPONSES_FIRST_LINE "etrace response files 1\n"
#define RESPONSES_MAX_BYTES (64u << 20)
#define ENVIRONMENT_MAX_BYTES (64u << 20) /* that are kept */

/* What reads the response files of one process. */
struct reading {
	struct recorder *recorder;
	int64_t upid;
};

uint64_t now_ns(void)
{
	LARGE_INTEGER count, rate;

	QueryPerformanceFrequency(&rate);
	QueryPerformanceCounter(&count);
	return (uint64_t)(count.QuadPart / rate.QuadPart) * NS_PER_SECOND +
	       (uint64_t)(count.QuadPart % rate.QuadPart) * NS_PER_SECOND / (uint64_t)rate.QuadPart;
}

static struct buffer current_directory(void)
{
	DWORD n = GetCurrentDirectoryW(0, NULL);
	wchar_t *wide = must_realloc(NULL, (n + 1) * sizeof(wchar_t));
	struct buffer text;

	n = GetCurrentDirectoryW(n, wide);
	text = text_from_wide(wide, n);
	text.len = path_directory(buffer_text(&text)).len;
	free(wide);
	return text;
}

void recorder_begin(struct recorder *recorder, const struct options *options,
		    struct processes *processes)
{
	*recorder = (struct recorder){ .options = options, .processes = processes };
	if (options->output)
		output_open(&recorder->spec, options->output);
	if (options->trace) {
		struct buffer directory = current_directory();

		output_open(&recorder->trace, options->trace);
		lines_begin(&recorder->trace.buffer, buffer_text(&directory));
		buffer_free(&directory);
	}
}

static void save_response(struct reading *reading, struct text path, struct text content)
{
	struct buffer *out = &reading->recorder->responses;

	if (!reading->recorder->options->trace)
		return;
	if (out->len + path.len + content.len > RESPONSES_MAX_BYTES) {
		reading->recorder->n_unsaved++;
		return;
	}
	buffer_add_text(out, text_of(out->len ? "file " : RESPONSES_FIRST_LINE "file "));
	buffer_add_number(out, (unsigned long long)reading->upid);
	buffer_add_char(out, ' ');
	buffer_add_number(out, path.len);
	buffer_add_char(out, ' ');
	buffer_add_number(out, content.len);
	buffer_add_char(out, '\n');
	buffer_add_text(out, path);
	buffer_add_char(out, '\n');
	buffer_add_text(out, content);
	buffer_add_char(out, '\n');
}

static bool read_response(void *context, struct text path, struct buffer *content)
{
	size_t start = content->len;

	if (!file_read(path, RESPONSE_MAX_FILE_BYTES, content))
		return false;
	save_response(context, path,
		      (struct text){ content->data + start, content->len - start });
	return true;
}

static void put_item(struct recorder *recorder, const struct process *process, bool is_known,
		     const struct parameters *parameters, const struct words *words)
{
	const struct options *options = recorder->options;
	const struct process *parent = processes_find(recorder->processes, parameters->parent);
	struct reading reading = { recorder, process->upid };
	struct response_source source = { read_response, &reading };
	struct text directory = buffer_text(&parameters->directory);
	struct buffer response = { 0 };
	struct words expanded = { 0 };
	struct spec_item item = {
		.pid = process->pid,
		.parent = parent ? parent->pid : 0,
		.directory = directory,
		.arguments = words,
		.is_known = is_known,
	};

	if (is_known && options->expands) {
		response_expand(&expanded, words, directory, &options->rules, source);
		item.arguments = &expanded;
	} else if (is_known) {
		item.has_response =
			response_text(&response, words, directory, &options->rules, source);
	}
	item.response = buffer_text(&response);
	if (options->output && (is_known || options->is_debug)) {
		spec_put(&recorder->spec.buffer, &item, options->is_debug, !recorder->n_items++);
		output_flow(&recorder->spec);
	}
	buffer_free(&response);
	words_free(&expanded);
}

/* All groups of variables, which are forgotten: their order in the trace means nothing. */
static void put_environment(struct recorder *recorder)
{
	size_t at = 0;
	uint64_t time_ns = now_ns();

	while (environment_next(&recorder->environment, &at, time_ns, &recorder->trace.buffer))
		output_flow(&recorder->trace);
	environment_free(&recorder->environment);
}

static void put_lines(struct recorder *recorder, const struct process *process, uint64_t time_ns,
		      struct text image, const struct parameters *parameters,
		      const struct words *words)
{
	const struct process *parent = processes_find(recorder->processes, parameters->parent);
	struct lines_exec exec = {
		.image = image,
		.asked = parameters->image.len ? buffer_text(&parameters->image) : image,
		.directory = buffer_text(&parameters->directory),
		.arguments = words,
	};

	if (parent && parent != process)
		lines_fork(&recorder->trace.buffer, parent->upid, time_ns, process->upid);
	lines_exec(&recorder->trace.buffer, process->upid, time_ns, &exec);
	if (recorder->options->has_environment)
		environment_add(&recorder->environment, process->upid, &parameters->environment);
	if (recorder->environment.n_bytes > ENVIRONMENT_MAX_BYTES)
		put_environment(recorder);
	recorder->n_lacking_environment += parameters->lacks_environment;
	output_flow(&recorder->trace);
}

void recorder_exec(struct recorder *recorder, struct process *process, uint64_t time_ns,
		   struct text image, const struct parameters *parameters)
{
	struct words words = { 0 };
	bool is_known;

	command_line_split(&words, buffer_text(&parameters->command_line));
	if (!words_count(&words))
		words_add(&words, image);
	is_known = recorder->options->knows_all ||
		   known_has(&recorder->options->known, words_at(&words, 0));
	buffer_add_text(&process->name, path_program(image));
	put_item(recorder, process, is_known, parameters, &words);
	if (recorder->options->trace)
		put_lines(recorder, process, time_ns, image, parameters, &words);
	words_free(&words);
}

void recorder_exit(struct recorder *recorder, const struct process *process, uint64_t time_ns,
		   uint32_t code)
{
	if (!recorder->options->trace)
		return;
	lines_exit(&recorder->trace.buffer, process->upid, time_ns, code);
	output_flow(&recorder->trace);
}

static wchar_t *responses_path(const wchar_t *trace)
{
	size_t len = wcslen(trace) + wcslen(RESPONSES_SUFFIX) + 1;
	wchar_t *path = must_realloc(NULL, len * sizeof(wchar_t));

	wcscpy(path, trace);
	wcscat(path, RESPONSES_SUFFIX);
	return path;
}

/* Only what a tracer wrote: a response file of the build may have that name. */
static void remove_responses(const wchar_t *path)
{
	struct buffer name = text_from_wide(path, wcslen(path)), content = { 0 };
	struct text first = { LITERAL(RESPONSES_FIRST_LINE) };

	if (file_read(buffer_text(&name), RESPONSES_MAX_BYTES, &content) && content.len >= first.len &&
	    !memcmp(content.data, first.data, first.len))
		DeleteFileW(path);
	buffer_free(&name);
	buffer_free(&content);
}

/* One of an earlier trace must not stay beside this one. */
static bool finish_responses(struct recorder *recorder)
{
	wchar_t *path = responses_path(recorder->options->trace);
	struct output output;
	bool is_written = true;

	if (recorder->responses.len) {
		output_open(&output, path);
		buffer_add_text(&output.buffer, buffer_text(&recorder->responses));
		is_written = output_finish(&output);
	} else {
		remove_responses(path);
	}
	free(path);
	return is_written;
}

static bool finish_trace(struct recorder *recorder)
{
	put_environment(recorder);
	if (!finish_responses(recorder)) {
		output_drop(&recorder->trace);
		return false;
	}
	return output_finish(&recorder->trace);
}

static void report_losses(const struct recorder *recorder)
{
	if (recorder->n_unsaved)
		say("%llu response files are not in the trace: there are more than %u MB of them",
		    (unsigned long long)recorder->n_unsaved, RESPONSES_MAX_BYTES >> 20);
	if (recorder->n_lacking_environment)
		say("the environment of %llu processes is not in the trace, or not whole",
		    (unsigned long long)recorder->n_lacking_environment);
}

static void free_rest(struct recorder *recorder)
{
	environment_free(&recorder->environment);
	buffer_free(&recorder->responses);
}

bool recorder_finish(struct recorder *recorder)
{
	bool is_written = true;

	report_losses(recorder);
	if (recorder->options->output) {
		spec_end(&recorder->spec.buffer, !recorder->n_items);
		is_written = output_finish(&recorder->spec);
	}
	if (recorder->options->trace)
		is_written = finish_trace(recorder) && is_written;
	free_rest(recorder);
	return is_written;
}

void recorder_drop(struct recorder *recorder)
{
	if (recorder->options->output)
		output_drop(&recorder->spec);
	if (recorder->options->trace)
		output_drop(&recorder->trace);
	free_rest(recorder);
}
