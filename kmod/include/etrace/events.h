/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Tags, arguments and limits of the event lines, as tables.
 * Rendered from etrace/spec/events.toml by `make generate`: do not edit.
 * Used by the kernel module and by every C program of etrace.
 */
#ifndef ETRACE_EVENTS_H
#define ETRACE_EVENTS_H

#define ETRACE_PART_BYTES 900 /* bytes: longest piece of a string on one line; a string of this length or more is numbered */
#define ETRACE_UPID_PID_BITS 22 /* bits: low bits of a upid that hold the kernel's pid; the rest is a sequence number */
#define ETRACE_KEPT_OUTPUT_BYTES 65536 /* bytes: of what an execution writes to a descriptor, Written keeps the first and last half of this */
#define ETRACE_FULL_OUTPUT_BYTES 33554432 /* bytes: beyond this much in the Written lines of a trace, brief_output_bytes applies, except to executions that failed */
#define ETRACE_BRIEF_OUTPUT_BYTES 2048 /* bytes: replaces kept_output_bytes then */
#define ETRACE_SIGNAL_STATUS_BASE 128 /* status: added to the signal number in Exit when a signal ended the process */

#define ETRACE_FIRST_LINE "INITCWD=" /* first line of a trace: working directory of the traced command, a newline in it as \012 */
#define ETRACE_CONT "Cont" /* text after a newline inside a string */
#define ETRACE_CONT_END "Cont_end" /* ends a group of Cont lines */
#define ETRACE_END_SUFFIX "_end" /* after a tag: ends a string that was printed in numbered parts */
#define ETRACE_END_OF_ARGS "End_of_args" /* ends the argument list of New_proc */

#define ETRACE_MAX_ARGS 7
#define ETRACE_MAX_DATA 3
#define ETRACE_MAX_VALUES 7

/* One event line. The comment lists the values a caller gives and the strings. */
enum etrace_event {
	ETRACE_EV_NEW_PROC, /* argsize; PI PP CW */
	ETRACE_EV_SCHED_FORK, /* pid; - */
	ETRACE_EV_SYS_CLONE, /* flags; - */
	ETRACE_EV_SYS_CLONE_FAILED, /* -; - */
	ETRACE_EV_EXIT, /* status; - */
	ETRACE_EV_USAGE, /* user, system, maxrss, rchar, wchar, voluntary, forced; - */
	ETRACE_EV_WRITTEN, /* fd, cut; OU */
	ETRACE_EV_OPEN, /* flags, mode, fd; FN FO */
	ETRACE_EV_CLOSE, /* fd; - */
	ETRACE_EV_PIPE, /* fd1, fd2, flags; - */
	ETRACE_EV_DUP, /* oldfd, newfd, flags; - */
	ETRACE_EV_RENAME_FROM, /* -; RF */
	ETRACE_EV_RENAME2FROM, /* flags; RF */
	ETRACE_EV_RENAME_TO, /* -; RT */
	ETRACE_EV_RENAME_FAILED, /* -; - */
	ETRACE_EV_LINK_FROM, /* -; LF */
	ETRACE_EV_LINKAT_FROM, /* flags; LF */
	ETRACE_EV_LINK_TO, /* -; LT */
	ETRACE_EV_LINK_FAILED, /* -; - */
	ETRACE_EV_SYMLINK, /* -; ST SR SL */
	ETRACE_EV_MOUNT, /* flags; MS MT MX */
	ETRACE_EV_MOUNT_FAILED, /* -; - */
	ETRACE_EV_UMOUNT, /* flags; MT */
	ETRACE_EV_UMOUNT_FAILED, /* -; - */
	ETRACE_EV_COMM, /* -; CN */
	ETRACE_EV_UPID, /* upid; - */
	ETRACE_N_EVENTS,
};

/* One kind of string. */
enum etrace_data {
	ETRACE_DATA_PI, /* absolute path of the program that runs (for a script, what its #! line names): directories resolved, last symlink kept (links of /proc and /dev/fd are followed) */
	ETRACE_DATA_PP, /* absolute path of the program that was asked for: directories resolved, last symlink kept (links of /proc and /dev/fd are followed) */
	ETRACE_DATA_CW, /* absolute path of the working directory */
	ETRACE_DATA_A, /* one argument; `A[i]` is argument i, repeated for further parts of the same argument */
	ETRACE_DATA_FN, /* absolute path of the opened file, symlinks resolved */
	ETRACE_DATA_FO, /* path as given to the call, made absolute by putting the directory and a `/` before it, not normalised */
	ETRACE_DATA_RF, /* absolute path of the rename's source */
	ETRACE_DATA_RT, /* absolute path of the rename's destination */
	ETRACE_DATA_LF, /* absolute path of the link's source; with AT_SYMLINK_FOLLOW, or AT_EMPTY_PATH and no name, that of the file itself */
	ETRACE_DATA_LT, /* absolute path of the new link */
	ETRACE_DATA_ST, /* target string of the symlink, not resolved */
	ETRACE_DATA_SR, /* absolute path that the target resolves to, when it exists */
	ETRACE_DATA_SL, /* absolute path of the symlink */
	ETRACE_DATA_MS, /* source given to mount, any string */
	ETRACE_DATA_MT, /* absolute path of the mount point */
	ETRACE_DATA_MX, /* file system type */
	ETRACE_DATA_CN, /* new thread name */
	ETRACE_DATA_OU, /* bytes as they were written */
	ETRACE_DATA_ENV, /* one variable, `NAME=value`; `Env[0]`, `Env[1]`, ... are its parts, with no end line */
	ETRACE_N_DATA,
};

enum etrace_numbering {
	ETRACE_NUMBERING_STRING, /* TAG|text, or TAG[n]part and TAG_end */
	ETRACE_NUMBERING_ITEM, /* TAG[i]text, i counts items */
	ETRACE_NUMBERING_PART, /* TAG[n]part, no end line */
};

struct etrace_data_def {
	const char *tag;
	unsigned char tag_len;
	unsigned char numbering;
};

struct etrace_arg_def {
	const char *name; /* with its '=' */
	unsigned char name_len;
	signed char size_of; /* position of the string it is the size of, or -1 */
	unsigned char is_unsigned;
};

struct etrace_event_def {
	const char *tag;
	unsigned char tag_len;
	unsigned char n_args;
	unsigned char n_data;
	unsigned char bare; /* one value right after the bar, without a name */
	struct etrace_arg_def args[ETRACE_MAX_ARGS];
	unsigned char data[ETRACE_MAX_DATA];
};

#ifdef ETRACE_EVENTS_TABLES
#define ETRACE_EVENT_DEFS /* alone: the table below and not this one */
static const struct etrace_data_def etrace_data_defs[ETRACE_N_DATA] = {
	{ "PI", 2, ETRACE_NUMBERING_STRING },
	{ "PP", 2, ETRACE_NUMBERING_STRING },
	{ "CW", 2, ETRACE_NUMBERING_STRING },
	{ "A", 1, ETRACE_NUMBERING_ITEM },
	{ "FN", 2, ETRACE_NUMBERING_STRING },
	{ "FO", 2, ETRACE_NUMBERING_STRING },
	{ "RF", 2, ETRACE_NUMBERING_STRING },
	{ "RT", 2, ETRACE_NUMBERING_STRING },
	{ "LF", 2, ETRACE_NUMBERING_STRING },
	{ "LT", 2, ETRACE_NUMBERING_STRING },
	{ "ST", 2, ETRACE_NUMBERING_STRING },
	{ "SR", 2, ETRACE_NUMBERING_STRING },
	{ "SL", 2, ETRACE_NUMBERING_STRING },
	{ "MS", 2, ETRACE_NUMBERING_STRING },
	{ "MT", 2, ETRACE_NUMBERING_STRING },
	{ "MX", 2, ETRACE_NUMBERING_STRING },
	{ "CN", 2, ETRACE_NUMBERING_STRING },
	{ "OU", 2, ETRACE_NUMBERING_STRING },
	{ "Env", 3, ETRACE_NUMBERING_PART },
};
#endif /* ETRACE_EVENTS_TABLES */

#ifdef ETRACE_EVENT_DEFS
static const struct etrace_event_def etrace_event_defs[ETRACE_N_EVENTS] = {
	{
		.tag = "New_proc",
		.tag_len = 8,
		.n_args = 4,
		.args = {
			{ "argsize=", 8, -1, 1 },
			{ "prognameisize=", 14, 0, 1 },
			{ "prognamepsize=", 14, 1, 1 },
			{ "cwdsize=", 8, 2, 1 },
		},
		.n_data = 3,
		.data = { ETRACE_DATA_PI, ETRACE_DATA_PP, ETRACE_DATA_CW },
	},
	{
		.tag = "SchedFork",
		.tag_len = 9,
		.n_args = 1,
		.args = {
			{ "pid=", 4, -1, 0 },
		},
	},
	{
		.tag = "SysClone",
		.tag_len = 8,
		.n_args = 1,
		.args = {
			{ "flags=", 6, -1, 1 },
		},
	},
	{
		.tag = "SysCloneFailed",
		.tag_len = 14,
	},
	{
		.tag = "Exit",
		.tag_len = 4,
		.n_args = 1,
		.args = {
			{ "status=", 7, -1, 1 },
		},
	},
	{
		.tag = "Usage",
		.tag_len = 5,
		.n_args = 7,
		.args = {
			{ "user=", 5, -1, 0 },
			{ "system=", 7, -1, 0 },
			{ "maxrss=", 7, -1, 0 },
			{ "rchar=", 6, -1, 0 },
			{ "wchar=", 6, -1, 0 },
			{ "voluntary=", 10, -1, 0 },
			{ "forced=", 7, -1, 0 },
		},
	},
	{
		.tag = "Written",
		.tag_len = 7,
		.n_args = 3,
		.args = {
			{ "fd=", 3, -1, 0 },
			{ "cut=", 4, -1, 0 },
			{ "size=", 5, 0, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_OU },
	},
	{
		.tag = "Open",
		.tag_len = 4,
		.n_args = 5,
		.args = {
			{ "fnamesize=", 10, 0, 1 },
			{ "forigsize=", 10, 1, 1 },
			{ "flags=", 6, -1, 1 },
			{ "mode=", 5, -1, 1 },
			{ "fd=", 3, -1, 0 },
		},
		.n_data = 2,
		.data = { ETRACE_DATA_FN, ETRACE_DATA_FO },
	},
	{
		.tag = "Close",
		.tag_len = 5,
		.n_args = 1,
		.args = {
			{ "fd=", 3, -1, 0 },
		},
	},
	{
		.tag = "Pipe",
		.tag_len = 4,
		.n_args = 3,
		.args = {
			{ "fd1=", 4, -1, 0 },
			{ "fd2=", 4, -1, 0 },
			{ "flags=", 6, -1, 1 },
		},
	},
	{
		.tag = "Dup",
		.tag_len = 3,
		.n_args = 3,
		.args = {
			{ "oldfd=", 6, -1, 0 },
			{ "newfd=", 6, -1, 0 },
			{ "flags=", 6, -1, 1 },
		},
	},
	{
		.tag = "RenameFrom",
		.tag_len = 10,
		.n_args = 1,
		.args = {
			{ "fnamesize=", 10, 0, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_RF },
	},
	{
		.tag = "Rename2From",
		.tag_len = 11,
		.n_args = 2,
		.args = {
			{ "fnamesize=", 10, 0, 1 },
			{ "flags=", 6, -1, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_RF },
	},
	{
		.tag = "RenameTo",
		.tag_len = 8,
		.n_args = 1,
		.args = {
			{ "fnamesize=", 10, 0, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_RT },
	},
	{
		.tag = "RenameFailed",
		.tag_len = 12,
	},
	{
		.tag = "LinkFrom",
		.tag_len = 8,
		.n_args = 1,
		.args = {
			{ "fnamesize=", 10, 0, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_LF },
	},
	{
		.tag = "LinkatFrom",
		.tag_len = 10,
		.n_args = 2,
		.args = {
			{ "fnamesize=", 10, 0, 1 },
			{ "flags=", 6, -1, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_LF },
	},
	{
		.tag = "LinkTo",
		.tag_len = 6,
		.n_args = 1,
		.args = {
			{ "fnamesize=", 10, 0, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_LT },
	},
	{
		.tag = "LinkFailed",
		.tag_len = 10,
	},
	{
		.tag = "Symlink",
		.tag_len = 7,
		.n_args = 3,
		.args = {
			{ "targetnamesize=", 15, 0, 1 },
			{ "resolvednamesize=", 17, 1, 1 },
			{ "linknamesize=", 13, 2, 1 },
		},
		.n_data = 3,
		.data = { ETRACE_DATA_ST, ETRACE_DATA_SR, ETRACE_DATA_SL },
	},
	{
		.tag = "Mount",
		.tag_len = 5,
		.n_args = 4,
		.args = {
			{ "sourcenamesize=", 15, 0, 1 },
			{ "targetnamesize=", 15, 1, 1 },
			{ "typenamesize=", 13, 2, 1 },
			{ "flags=", 6, -1, 1 },
		},
		.n_data = 3,
		.data = { ETRACE_DATA_MS, ETRACE_DATA_MT, ETRACE_DATA_MX },
	},
	{
		.tag = "MountFailed",
		.tag_len = 11,
	},
	{
		.tag = "Umount",
		.tag_len = 6,
		.n_args = 2,
		.args = {
			{ "targetnamesize=", 15, 0, 1 },
			{ "flags=", 6, -1, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_MT },
	},
	{
		.tag = "UmountFailed",
		.tag_len = 12,
	},
	{
		.tag = "Comm",
		.tag_len = 4,
		.n_args = 1,
		.args = {
			{ "size=", 5, 0, 1 },
		},
		.n_data = 1,
		.data = { ETRACE_DATA_CN },
	},
	{
		.tag = "UPID",
		.tag_len = 4,
		.bare = 1,
	},
};
#endif /* ETRACE_EVENT_DEFS */

#endif /* ETRACE_EVENTS_H */
