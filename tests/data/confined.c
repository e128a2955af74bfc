// SPDX-License-Identifier: Apache-2.0
/*
 * Forbids itself all calls but the one that ends it, without a word to libc, and ends. Any other call
 * kills it: no library can know of such a filter.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static long call(long number, long a, long b, long c)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long result = number;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
	return x0;
#endif
}

int main(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0) ||
	    call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program))
		return 1;
	return 0;
}
