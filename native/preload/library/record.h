/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way to the collector. All of this may run in a signal handler. */
#ifndef ETRACE_PRELOAD_RECORD_H
#define ETRACE_PRELOAD_RECORD_H

#include "chunk.h"

struct record {
	struct ring_record *head; /* of the part that is being written; NULL: no room, nothing is */
	char *at;
	char *end; /* of the chunk */
	struct writer *writer;
	struct ring_record values; /* that every part begins with */
};

/* Map the shared memory that the environment names. Once, when the library is loaded. */
void record_connect(char **environment);

void record_begin(struct record *record, enum ring_kind kind);
void record_begin_at(struct record *record, enum ring_kind kind, uint64_t time_ns);
void record_string(struct record *record, const char *text, size_t n);
void record_end(struct record *record);

/* A record without strings. */
void record_put(enum ring_kind kind, int a, int b, int c);
void record_put_at(enum ring_kind kind, uint64_t time_ns, int a, int b, int c);

uint64_t record_now(void);

/* A child may share this memory: from now on each record asks who writes it. */
void record_expect_sharing(void);

/* This process, and whether it is a child in its parent's memory (vfork). */
int record_pid(void);
bool record_is_sharing(void);

/* The process ends or becomes another program: its chunks are complete. */
void record_leave(void);

/* The end of the process is recorded, and nothing that it does from here on. */
void record_stop(void);

/* ---- calls ---- */

/* open.c: `name` was opened as `fd`, if that is not negative; returns it. */
int record_open(int fd, int dirfd, const char *name, int flags, unsigned int mode);

/* response.c: a program was loaded; if it is a compiler, record what its response files hold. */
void record_responses(char *const *arguments);

#endif /* ETRACE_PRELOAD_RECORD_H */
