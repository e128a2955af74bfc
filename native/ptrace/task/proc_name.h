/* SPDX-License-Identifier: Apache-2.0 */
/* Names below /proc of a traced task, for the system calls of the tracer. */
#ifndef ETRACE_PTRACE_PROC_NAME_H
#define ETRACE_PTRACE_PROC_NAME_H

#include <sys/types.h>

#define PROC_NAME_MAX 64

/* Text of "/proc/TID/link". */
void proc_name(char name[PROC_NAME_MAX], pid_t tid, const char *link);

/* Text of "/proc/TID/task/TID/file". */
void proc_thread_name(char name[PROC_NAME_MAX], pid_t tid, const char *file);

/* Text of "/proc/TID/fd/FD". */
void proc_fd_name(char name[PROC_NAME_MAX], pid_t tid, int fd);

#endif /* ETRACE_PTRACE_PROC_NAME_H */
