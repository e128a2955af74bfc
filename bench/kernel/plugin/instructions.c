// SPDX-License-Identifier: Apache-2.0
/*
 * A TCG plugin of QEMU: how often each instruction of the guest's kernel was executed between two
 * marks (marks.h) of a program in the guest. For one processor.
 *
 *     -plugin instructions.so,to=FOLDER
 *
 * Each pair of marks leaves a file FOLDER/0, FOLDER/1, ...: lines `ADDRESS COUNT INSTRUCTION`, and one
 * line `0 COUNT user` for all of user space. The interface is that of docs/devel/tcg-plugins in
 * QEMU 4.2 to 8.2; Debian ships no header for it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../marks.h"

/* ---- of QEMU's qemu-plugin.h, version 1 of the interface ---- */

struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { CB_NO_REGS = 0 };
enum { INLINE_ADD_U64 = 0 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*cb)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op, void *at,
						uint64_t immediate);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int cpu, void *data), int flags,
					    void *data);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

/* ---- counters ---- */

#define N_PLACES (1u << 20) /* a kernel and its modules execute some 200,000 instructions */

struct place {
	uint64_t address; /* 0: free */
	uint64_t count;
	char *text; /* as it was translated last: kernels patch themselves */
};

static struct place places[N_PLACES]; /* open addressing */
static uint64_t n_user;
static const char *folder;
static unsigned int n_written;

static struct place *place_of(uint64_t address)
{
	uint32_t i = (uint32_t)(address * 0x9e3779b97f4a7c15u >> 44);

	while (places[i].address && places[i].address != address)
		i = (i + 1) % N_PLACES;
	places[i].address = address;
	return &places[i];
}

static void begin(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	n_user = 0;
	for (size_t i = 0; i < N_PLACES; i++)
		places[i].count = 0;
}

static void end(unsigned int cpu, void *data)
{
	char path[4096];
	FILE *to;

	(void)cpu;
	(void)data;
	snprintf(path, sizeof(path), "%s/%u", folder, n_written++);
	to = fopen(path, "w");
	if (!to) {
		perror(path);
		exit(1);
	}
	fprintf(to, "0 %" PRIu64 " user\n", n_user);
	for (size_t i = 0; i < N_PLACES; i++)
		if (places[i].count)
			fprintf(to, "%" PRIx64 " %" PRIu64 " %s\n", places[i].address,
				places[i].count, places[i].text);
	if (fclose(to)) {
		perror(path);
		exit(1);
	}
}

/* ---- translation ---- */

static bool is_mark(const struct qemu_plugin_insn *insn, const char *mark)
{
	return qemu_plugin_insn_size(insn) == MARK_BYTES &&
	       !memcmp(qemu_plugin_insn_data(insn), mark, MARK_BYTES);
}

static void translate_one(struct qemu_plugin_insn *insn)
{
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	uint64_t *count = &n_user;

	if (address >> 63) {
		struct place *place = place_of(address);

		free(place->text);
		place->text = qemu_plugin_insn_disas(insn);
		count = &place->count;
	}
	qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, count, 1);
	if (is_mark(insn, MARK_BEGIN))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, CB_NO_REGS, NULL);
	if (is_mark(insn, MARK_END))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, end, CB_NO_REGS, NULL);
}

static void translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		translate_one(qemu_plugin_tb_get_insn(tb, i));
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "to=", 3)) {
		fprintf(stderr, "usage: -plugin instructions.so,to=FOLDER\n");
		return 1;
	}
	folder = strdup(argv[0] + 3);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return !folder;
}
