/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfork(): the child returns from it on the parent's stack, so nothing may be on that stack but what
 * the caller put there; the real one is jumped to. dlopen() and dlmopen() look at their caller, so they
 * are jumped to as well. And the system call of 32 bits.
 */
	.text
	.globl vfork
	.type vfork, %function
#ifdef __x86_64__
vfork:
	.cfi_startproc
	endbr64
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call preload_before_vfork
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp *%rax
	.cfi_endproc

	.macro opening name, before
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	endbr64
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	call \before
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	jmp *%rax
	.cfi_endproc
	.size \name, . - \name
	.endm
#elif defined(__aarch64__)
vfork:
	.cfi_startproc
	stp x29, x30, [sp, -16]!
	bl preload_before_vfork
	ldp x29, x30, [sp], 16
	br x0
	.cfi_endproc

	.macro opening name, before
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	stp x29, x30, [sp, -48]!
	stp x0, x1, [sp, 16]
	str x2, [sp, 32]
	bl \before
	mov x16, x0
	ldp x0, x1, [sp, 16]
	ldr x2, [sp, 32]
	ldp x29, x30, [sp], 48
	br x16
	.cfi_endproc
	.size \name, . - \name
	.endm
#else
vfork:
	.cfi_startproc
	subl $12, %esp
	.cfi_adjust_cfa_offset 12
	call preload_before_vfork
	addl $12, %esp
	.cfi_adjust_cfa_offset -12
	jmp *%eax
	.cfi_endproc

	.macro opening name, before
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	subl $12, %esp
	.cfi_adjust_cfa_offset 12
	call \before
	addl $12, %esp
	.cfi_adjust_cfa_offset -12
	jmp *%eax
	.cfi_endproc
	.size \name, . - \name
	.endm

	.globl system_call
	.hidden system_call
	.type system_call, %function
system_call:
	pushl %ebp
	pushl %edi
	pushl %esi
	pushl %ebx
	movl 20(%esp), %eax
	movl 24(%esp), %ebx
	movl 28(%esp), %ecx
	movl 32(%esp), %edx
	movl 36(%esp), %esi
	movl 40(%esp), %edi
	movl 44(%esp), %ebp
	int $0x80
	popl %ebx
	popl %esi
	popl %edi
	popl %ebp
	ret
	.size system_call, . - system_call
#endif
	.size vfork, . - vfork
	opening dlopen, preload_before_dlopen
	opening dlmopen, preload_before_dlmopen
	.section .note.GNU-stack, "", %progbits
