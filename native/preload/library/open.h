/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PRELOAD_OPEN_H
#define ETRACE_PRELOAD_OPEN_H

/* Flags of open(); those that differ between machines are the compiler's target's. */
#define O_RDONLY 0
#define O_WRONLY 1
#define O_RDWR 2
#define O_CREAT 0100
#define O_EXCL 0200
#define O_TRUNC 01000
#define O_APPEND 02000
#define O_NONBLOCK 04000
#define O_CLOEXEC 02000000
#ifdef __aarch64__
#define O_DIRECTORY 040000
#else
#define O_DIRECTORY 0200000
#endif
#define O_TMPFILE (020000000 | O_DIRECTORY)

/* What open64() adds on machines where open() is for small files. */
#if __SIZEOF_POINTER__ == 4
#define LARGEFILE 0100000
#else
#define LARGEFILE 0
#endif

/* `name` was opened as `fd`, if that is not negative; returns it. */
int open_told(int fd, int dirfd, const char *name, int flags, unsigned int mode);

#endif /* ETRACE_PRELOAD_OPEN_H */
