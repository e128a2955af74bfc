/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that the tracer writes: with whose rights they are made, who may read them, and their
 * names. Every file beside the trace is made and renamed by these functions.
 */
#ifndef ETRACE_CAPTURE_OUTPUT_H
#define ETRACE_CAPTURE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* --owner UID:GID: with the rights of this user files are made, renamed and removed. */
void output_set_owner(const char *text);

/* --folder FD: all files are made in this directory, with the last names of their paths. */
void output_set_folder(const char *text);

/* --marks FD: the user's directory of marks, which says what the user captured. */
void output_set_marks(const char *text);

/* Let the program that this one becomes, with the same options, have the directories. */
void output_keep_folders(void);

/*
 * Mark a file that is complete: that the owner captured it, by a name that no other file has
 * (etrace/nfsdb/marks.py). Nothing without --marks, nor where no mark can be made.
 */
void output_mark(const char *path);

/* --rotate FILE: another file that goes aside when the trace gets its name. */
void output_add_rotated(const char *path);

/* Open `path`, made when it is not there, for writing; -1 and errno. */
int output_open(const char *path);

/* Make a new file; -1 and errno, also when anything has that name. */
int output_create(const char *path);

/* Rename a file; -1 and errno. */
int output_rename(const char *from, const char *to);

/*
 * Write a file that appears whole or not at all: `put` writes its content. On failure report that
 * `what` cannot be written.
 */
void output_write_whole(const char *path, const char *what, void (*put)(FILE *file));

/* Remove a file that may be there, with no more rights than it was made with. */
void output_remove(const char *path);

/*
 * With --rotate the trace has a name of its own until the command runs: a command that cannot be
 * executed costs no older trace. Return the descriptor of the new file, locked, or end the program.
 */
int output_begin(const char *trace);

/*
 * The command runs: put the older files aside, give the trace its name. Return whether an older
 * trace was put aside.
 */
bool output_publish(void);

/* Remove the trace unless it has got its name. */
void output_discard(void);

/* Whether the files of the capture have their names, or are to have none. */
bool output_is_published(void);

#endif /* ETRACE_CAPTURE_OUTPUT_H */
