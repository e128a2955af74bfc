/* SPDX-License-Identifier: Apache-2.0 */
/* Names below /proc of a process or task, and what is read there of any process. */
#ifndef ETRACE_CAPTURE_PROC_H
#define ETRACE_CAPTURE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PROC_NAME_MAX 64
#define PROC_COMM_MAX 64

/* Text of "/proc/TID/link". */
void proc_name(char name[PROC_NAME_MAX], pid_t tid, const char *link);

/* Text of "/proc/TID/task/TID/file". */
void proc_thread_name(char name[PROC_NAME_MAX], pid_t tid, const char *file);

/* Text of "/proc/TID/fd/FD". */
void proc_fd_name(char name[PROC_NAME_MAX], pid_t tid, int fd);

/* Read a file as text, at most `size` bytes with its end; returns the length, 0 on any failure. */
size_t proc_read(const char *path, char *text, size_t size);

/* The flags of an open file, as fcntl(F_GETFL) gives them; false when they are unknown. */
bool proc_read_flags(pid_t tid, int fd, unsigned int *flags);

/* The name of a process or thread without its newline; "" when it is gone. */
void proc_read_comm(pid_t tid, char comm[PROC_COMM_MAX]);

/* The parent of a process; 0 when it is gone. */
pid_t proc_parent(pid_t pid);

/* Whether a path is that of this process in /proc: what a task called /proc/self is another one. */
bool proc_is_own(const char *path);

#endif /* ETRACE_CAPTURE_PROC_H */
