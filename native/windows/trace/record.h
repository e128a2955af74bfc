/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that began and ended -> the build spec, the event lines, the saved response files. */
#ifndef WINDOWS_RECORD_H
#define WINDOWS_RECORD_H

#include "trace/options.h"
#include "trace/output.h"
#include "trace/parameters.h"
#include "trace/process.h"

struct recorder {
	const struct options *options;
	struct processes *processes;
	struct output spec;
	struct output trace;
	struct environment environment;
	struct buffer responses; /* records of .nfsdb.rsp */
	uint64_t n_items;
	uint64_t n_unsaved; /* response files beyond what is kept */
	uint64_t n_lacking_environment; /* processes whose environment could not be read to its end */
};

uint64_t now_ns(void);

/* Open the outputs. die() when a place cannot be written. */
void recorder_begin(struct recorder *recorder, const struct options *options,
		    struct processes *processes);
/* A program began; `image` is the file that runs. */
void recorder_exec(struct recorder *recorder, struct process *process, uint64_t time_ns,
		   struct text image, const struct parameters *parameters);
void recorder_exit(struct recorder *recorder, const struct process *process, uint64_t time_ns,
		   uint32_t code);
/* Give the outputs their names; false when one could not be written. */
bool recorder_finish(struct recorder *recorder);
/* Leave no output. */
void recorder_drop(struct recorder *recorder);

#endif /* WINDOWS_RECORD_H */
