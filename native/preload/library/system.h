/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls and strings without libc: the library is loaded into programs of any libc, and runs in
 * signal handlers and in children of vfork(). Results are -errno as the kernel gives them.
 */
#ifndef ETRACE_PRELOAD_SYSTEM_H
#define ETRACE_PRELOAD_SYSTEM_H

#include <asm/unistd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))
#define WEAK __attribute__((weak, visibility("default")))

#ifdef __x86_64__
static inline long system_call(long n, long a, long b, long c, long d, long e, long f)
{
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static inline long system_call(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}
#else
long system_call(long n, long a, long b, long c, long d, long e, long f); /* entry.S */
#endif

#define CALL6(n, a, b, c, d, e, f) \
	system_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL5(n, a, b, c, d, e) CALL6(n, a, b, c, d, e, 0)
#define CALL4(n, a, b, c, d) CALL6(n, a, b, c, d, 0, 0)
#define CALL3(n, a, b, c) CALL6(n, a, b, c, 0, 0, 0)
#define CALL2(n, a, b) CALL6(n, a, b, 0, 0, 0, 0)
#define CALL1(n, a) CALL6(n, a, 0, 0, 0, 0, 0)
#define CALL0(n) CALL6(n, 0, 0, 0, 0, 0, 0)

/* Constants of the kernel that are the same for every table of calls. */
#define AT_FDCWD (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_SYMLINK_FOLLOW 0x400
#define AT_EMPTY_PATH 0x1000
#define PATH_MAX 4096

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
#define O_PATH 010000000
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

/* Of mmap(). */
#define PROT_READ_WRITE 3
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 0x20

#define EINTR 4
#define ENOENT 2
#define ENOEXEC 8
#define EBADF 9
#define EFAULT 14
#define EAGAIN 11
#define ENOMEM 12
#define EMFILE 24
#define EACCES 13
#define ENODEV 19
#define ENOTDIR 20
#define EINVAL 22
#define ENOSYS 38
#define ENAMETOOLONG 36
#define ESTALE 116
#define ETIMEDOUT 110

/* libc's, of whatever libc; those that are weak may be missing. */
int *__errno_location(void);
void *dlsym(void *handle, const char *name) WEAK;
extern char **environ WEAK;
extern char __libc_single_threaded WEAK;

#define RTLD_NEXT ((void *)-1L)

static inline bool is_error(long result)
{
	return (unsigned long)result >= (unsigned long)-4095L;
}

/* The result of a system call as libc's function gives it. */
static inline long with_errno(long result)
{
	if (!is_error(result))
		return result;
	*__errno_location() = (int)-result;
	return -1;
}

/* `offset` in the file: of whole pages of 4096 bytes. */
static inline long map_memory(size_t size, int flags, long fd, size_t offset)
{
#ifdef __NR_mmap2
	return CALL6(__NR_mmap2, 0, size, PROT_READ_WRITE, flags, fd, offset / 4096);
#else
	return CALL6(__NR_mmap, 0, size, PROT_READ_WRITE, flags, fd, offset);
#endif
}

/*
 * Whether the kernel can read eight bytes there, asked by a call that reads them and then fails for
 * another reason. Programs that test for EFAULT are to get it.
 */
static inline bool is_readable(const void *memory)
{
	return CALL4(__NR_rt_sigprocmask, -1, memory, NULL, 8) != -EFAULT;
}

static inline size_t length(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	return n;
}

static inline void copy(void *to, const void *from, size_t n)
{
	__builtin_memcpy(to, from, n);
}

static inline bool is_same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* Whether `text` begins with the `n` bytes of `start`. */
static inline bool starts(const char *text, const char *start, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (text[i] != start[i])
			return false;
	return true;
}

static inline const char *find(const char *text, const char *part)
{
	size_t n = length(part);

	for (; *text; text++)
		if (starts(text, part, n))
			return text;
	return n ? NULL : text;
}

/* The function of that name that follows this library, found once. */
#define NEXT(function) \
	({ \
		static __typeof__(&function) next_##function; \
		if (!next_##function && dlsym) \
			next_##function = (__typeof__(&function))dlsym(RTLD_NEXT, #function); \
		next_##function; \
	})

/* Other threads may be cancelled in a call of libc, or wait in one: then libc makes it. */
static inline bool has_threads(void)
{
	return &__libc_single_threaded && !__libc_single_threaded;
}

#endif /* ETRACE_PRELOAD_SYSTEM_H */
