// SPDX-License-Identifier: Apache-2.0
/*
 * The seccomp filter: which system calls of which table of numbers stop, and their kinds.
 *
 * Facts: a call number that the program allows without looking at its arguments stays in the
 * kernel's constant-action bitmap (Linux 5.11+), so the calls that are not listed here cost some
 * ten nanoseconds. The list is searched from the top: the frequent calls come first.
 */
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/options.h"

#define NO_CALL (-1) /* the table of numbers has no such call */
#define X32_BIT 0x40000000
#define MAX_INSTRUCTIONS 768

/* A call counts only when this argument has one of these values, or any of these bits. */
struct condition {
	uint8_t argument;
	uint8_t n_values;
	uint32_t values[3];
	uint32_t bits; /* instead of values */
};

/* One column for each table of numbers; x32 differs from x86-64 in few places only. */
struct row {
	enum call call;
	int x86_64;
	int x32;
	int i386;
	int arm64;
	int arm; /* EABI */
	const struct condition *condition;
};

static const struct condition is_dup = { 1, 2, { F_DUPFD, F_DUPFD_CLOEXEC }, 0 };
static const struct condition to_error = { 0, 1, { STDERR_FILENO }, 0 };
static const struct condition to_output = { 0, 1, { STDOUT_FILENO }, 0 };
static const struct condition to_either = { 0, 2, { STDERR_FILENO, STDOUT_FILENO }, 0 };
static const struct condition is_write; /* one of these three, or the call does not count */
static const struct condition sets_name = { 0, 1, { PR_SET_NAME }, 0 };
static const struct condition attaches = { 0, 3, { PTRACE_TRACEME, PTRACE_ATTACH, PTRACE_SEIZE }, 0 };
static const struct condition listens = { 1, 1, { 0 }, SECCOMP_FILTER_FLAG_NEW_LISTENER };

#define CALL_NUMBERS
#include "task/calls.h"

#if defined(__x86_64__) && !defined(__ILP32__)
_Static_assert(SYS_openat == 257 && SYS_close == 3 && SYS_execveat == 322, "x86-64 numbers");
#elif defined(__aarch64__)
_Static_assert(SYS_openat == 56 && SYS_close == 57 && SYS_execveat == 281, "arm64 numbers");
#else
#error "the filter has no table of numbers for this machine: add a column to rows[]"
#endif

struct program {
	struct sock_filter code[MAX_INSTRUCTIONS];
	unsigned int len;
	bool overflow;
};

/* A table of numbers: its architecture, its column of rows[] and what is added to each number. */
struct abi {
	uint32_t audit_arch;
	size_t column;
	int bias;
};

static void put(struct program *program, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
	if (program->len == MAX_INSTRUCTIONS)
		program->overflow = true;
	else
		program->code[program->len++] = (struct sock_filter){ code, if_true, if_false, k };
}

static void put_load(struct program *program, size_t offset)
{
	put(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The distance of a jump is filled in by end_jump(). */
static unsigned int begin_jump(struct program *program)
{
	put(program, BPF_JMP | BPF_JA, 0, 0, 0);
	return program->len;
}

static void end_jump(struct program *program, unsigned int start)
{
	program->code[start - 1].k = program->len - start;
}

static void put_return(struct program *program, uint32_t action)
{
	put(program, BPF_RET | BPF_K, action, 0, 0);
}

/* Which descriptors' writes stop. */
static const struct condition *kept_writes(void)
{
	if (options.keeps_stderr)
		return options.keeps_stdout ? &to_either : &to_error;
	return &to_output;
}

static const struct condition *condition_of(const struct row *row)
{
	return row->condition == &is_write ? kept_writes() : row->condition;
}

static bool is_wanted(const struct row *row)
{
	if (row->condition == &is_write)
		return options.keeps_stderr || options.keeps_stdout;
	switch (row->call) {
	case CALL_MOUNT:
	case CALL_OLDUMOUNT:
	case CALL_UMOUNT2:
		return options.mounts;
	case CALL_SET_NAME:
		return options.thread_names;
	default:
		return true;
	}
}

/* An argument is compared by its low half: the values are all small. */
static void put_row(struct program *program, const struct row *row, int number)
{
	const struct condition *condition = condition_of(row);
	uint8_t n = condition ? condition->n_values : 0;
	uint8_t i;

	put(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0,
	    condition ? (uint8_t)(2 * n + 2) : 1);
	if (!condition) {
		put_return(program, SECCOMP_RET_TRACE | row->call);
		return;
	}
	put_load(program, offsetof(struct seccomp_data, args) + condition->argument * sizeof(uint64_t));
	for (i = 0; i < n; i++) {
		put(program, (condition->bits ? BPF_JSET : BPF_JEQ) | BPF_JMP | BPF_K,
		    condition->bits ? condition->bits : condition->values[i], 0, 1);
		put_return(program, SECCOMP_RET_TRACE | row->call);
	}
	put_return(program, SECCOMP_RET_ALLOW);
}

static void put_rows(struct program *program, const struct abi *abi)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int number = *(const int *)((const char *)&rows[i] + abi->column);

		if (number != NO_CALL && is_wanted(&rows[i]))
			put_row(program, &rows[i], number + abi->bias);
	}
	put_return(program, SECCOMP_RET_ALLOW);
}

/* `if (arch == audit_arch) { rows }`: the jump over the rows is too long for a conditional one. */
static void put_arch(struct program *program, const struct abi *abis, size_t n_abis)
{
	unsigned int end;
	size_t i;

	put(program, BPF_JMP | BPF_JEQ | BPF_K, abis[0].audit_arch, 1, 0);
	end = begin_jump(program);
	put_load(program, offsetof(struct seccomp_data, nr));
	for (i = 0; i < n_abis; i++) {
		unsigned int next = 0;

		if (i + 1 < n_abis) { /* numbers with the x32 bit are for the next table */
			put(program, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
			next = begin_jump(program);
		}
		put_rows(program, &abis[i]);
		if (next)
			end_jump(program, next);
	}
	end_jump(program, end);
}

#if defined(__x86_64__)
static const struct abi native[] = {
	{ AUDIT_ARCH_X86_64, offsetof(struct row, x86_64), 0 },
	{ AUDIT_ARCH_X86_64, offsetof(struct row, x32), X32_BIT },
};

static const struct abi compat[] = {
	{ AUDIT_ARCH_I386, offsetof(struct row, i386), 0 },
};
#else
static const struct abi native[] = {
	{ AUDIT_ARCH_AARCH64, offsetof(struct row, arm64), 0 },
};

static const struct abi compat[] = {
	{ AUDIT_ARCH_ARM, offsetof(struct row, arm), 0 },
};
#endif

static void build(struct program *program)
{
	put_load(program, offsetof(struct seccomp_data, arch));
	put_arch(program, native, sizeof(native) / sizeof(native[0]));
	put_arch(program, compat, sizeof(compat) / sizeof(compat[0]));
	put_return(program, SECCOMP_RET_TRACE | CALL_FOREIGN_ABI);
}

int filter_install(void)
{
	struct program program = { .len = 0 };
	struct sock_fprog fprog;

	build(&program);
	if (program.overflow)
		return -E2BIG;
	fprog.len = (unsigned short)program.len;
	fprog.filter = program.code;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
		return -errno;
	return 0;
}

static const struct abi *find_abi(uint32_t audit_arch, uint64_t number)
{
	if (audit_arch == native[0].audit_arch)
		return &native[sizeof(native) / sizeof(native[0]) > 1 && number & X32_BIT ? 1 : 0];
	if (audit_arch == compat[0].audit_arch)
		return &compat[0];
	return NULL;
}

static bool is_met(const struct condition *condition, const uint64_t *args)
{
	uint32_t value;
	uint8_t i;

	if (!condition)
		return true;
	value = (uint32_t)args[condition->argument];
	for (i = 0; i < condition->n_values; i++)
		if (condition->bits ? value & condition->bits : value == condition->values[i])
			return true;
	return false;
}

enum call filter_classify(uint32_t audit_arch, uint64_t number, const uint64_t *args,
			  bool sees_writes)
{
	const struct abi *abi = find_abi(audit_arch, number);
	size_t i;

	if (!abi)
		return CALL_FOREIGN_ABI;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int row_number = *(const int *)((const char *)&rows[i] + abi->column);

		if (row_number == NO_CALL || number != (uint64_t)(row_number + abi->bias) ||
		    !is_wanted(&rows[i]))
			continue;
		if (sees_writes && rows[i].condition == &is_write && is_met(&to_output, args))
			return rows[i].call;
		return is_met(condition_of(&rows[i]), args) ? rows[i].call : CALL_NONE;
	}
	return CALL_NONE;
}
