/* SPDX-License-Identifier: Apache-2.0 */
/* A command that cannot be executed: with which status a shell ends then, why, and what to do. */
#ifndef ETRACE_CAPTURE_UNRUNNABLE_H
#define ETRACE_CAPTURE_UNRUNNABLE_H

/*
 * Execute as execvp() does, and as shells do: a file without a `#!` line goes to /bin/sh only when it
 * is text. Returns when that failed; errno says why.
 */
void command_execute(char **command);

/* The exit status for an error of command_execute(). */
int command_failure_status(int error);

/*
 * Print why a command did not start, and return the exit status. Without an error (0) find out whether
 * it will: 0 when nothing speaks against it.
 */
int command_explain(char **command, int error);

#endif /* ETRACE_CAPTURE_UNRUNNABLE_H */
