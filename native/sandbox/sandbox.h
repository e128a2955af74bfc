/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of etrace-sandbox share; main.c says how they work together. */
#ifndef ETRACE_SANDBOX_H
#define ETRACE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MAX_FOLDERS 8
#define MAX_GROUPS 256

/* What the program may execute. */
enum may {
	MAY_NOTHING, /* nothing after itself */
	MAY_BELOW, /* programs in `folders` */
	MAY_ALL, /* whatever it finds */
};

struct sandbox {
	int program; /* a descriptor of the program's file, which was checked */
	int report; /* where the end is written to */
	enum may may;
	const char *folders[MAX_FOLDERS];
	size_t n_folders;
	const char *scratch; /* an empty directory, or NULL */
	bool begins_in_scratch;
	bool has_namespaces; /* where they are allowed */
	bool has_scratch; /* memory is mounted there, so it may be written to */
	uid_t code_owner; /* besides root, of code that may be loaded */
	uid_t file_owner; /* besides root, of what root's program reads */
	bool changes_user; /* from root to these */
	bool reads_all; /* and may read what only root may */
	uid_t uid;
	gid_t gid;
	gid_t groups[MAX_GROUPS];
	size_t n_groups;
	int seconds;
	int megabytes; /* of memory, each process */
	int output_megabytes; /* of each file */
	int processes;
	char **arguments;
	char **environment;
};

/* ---- of the process that becomes the program: each ends it when it fails ---- */

/* Report to the supervisor why the program does not run: `missing` or `refused`, and text. */
void give_up(const char *kind, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* Whether namespaces of its own are complete: the user is in them, no file system is writable. */
bool namespaces_enter(struct sandbox *box);

/* From root to the user of the sandbox, for good. -1 and errno. */
int user_become(const struct sandbox *box);

/* Linux's capabilities are gone, except those that `reads_all` keeps. -1 and errno. */
int user_drop_capabilities(const struct sandbox *box);

/* No file can be changed, and nothing else executed than what the sandbox allows. */
void landlock_restrict(const struct sandbox *box);

/* Calls that map code or open files ask the supervisor; return the descriptor that it hears by. */
int filter_ask(const struct sandbox *box);

/* Deny the calls that Landlock does not cover. */
void filter_deny(const struct sandbox *box);

/* ---- of the supervisor ---- */

/* Answer one question of the program: answer.c. */
void answer(const struct sandbox *box, int listener, pid_t program);

/* A line of the report. */
void report(const struct sandbox *box, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* ETRACE_SANDBOX_H */
