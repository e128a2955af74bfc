// SPDX-License-Identifier: Apache-2.0
/*
 * `syscall; ret` in a page of its own at an address that no program links to and that the kernel does
 * not choose by itself. Programs of 64 bits on x86-64 only: all calls of others stop for the tracer.
 */
#include "fast.h"

#include "../ring.h"

#ifdef __x86_64__
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 0x20
#define MAP_FIXED_NOREPLACE 0x100000

bool fast_map(void)
{
	static const char code[] = { 0x0f, 0x05, (char)0xc3 };
	char *page = (char *)(uintptr_t)FAST_PAGE;

	if (CALL6(__NR_mmap, page, FAST_PAGE_BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (long)page)
		return false;
	copy(page, code, sizeof(code));
	return !CALL3(__NR_mprotect, page, FAST_PAGE_BYTES, PROT_READ | PROT_EXEC);
}

/* The library is compiled without a red zone: the call writes below the stack pointer. */
long fast_call(long n, long a, long b, long c, long d)
{
	long result;
	register long r10 __asm__("r10") = d;

	__asm__ volatile("call *%[page]"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), [page] "r"((long)FAST_PAGE)
			 : "rcx", "r11", "memory");
	return result;
}
#else
bool fast_map(void)
{
	return false;
}

long fast_call(long n, long a, long b, long c, long d)
{
	return CALL4(n, a, b, c, d);
}
#endif

/* In a pid namespace of its own it has another number. */
bool fast_knows(int pid)
{
	char text[12];
	long n = CALL4(__NR_readlinkat, AT_FDCWD, "/proc/self", text, sizeof(text));
	int number = 0;
	long i;

	for (i = 0; i < n; i++)
		number = 10 * number + (text[i] - '0');
	return n > 0 && number == pid && CALL0(__NR_getppid) > 0;
}
