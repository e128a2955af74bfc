/* SPDX-License-Identifier: GPL-2.0-only */
/* The running session, for all parts: its number, options and counters. */
#ifndef ETRACE_STATE_H
#define ETRACE_STATE_H

#include <linux/percpu.h>
#include <linux/types.h>

#include "etrace/control.h"

extern u32 etrace_options; /* ETRACE_OPTION_* */
extern u32 etrace_session; /* its number; 0 when none runs */

/* Counters are per CPU: any context. */
struct etrace_counters {
	u64 n[ETRACE_N_COUNTERS];
};

extern struct etrace_counters __percpu *etrace_counters;

static inline void etrace_count(enum etrace_counter counter)
{
	this_cpu_inc(etrace_counters->n[counter]);
}

static inline void etrace_count_n(enum etrace_counter counter, u64 n)
{
	this_cpu_add(etrace_counters->n[counter], n);
}

/* When the module is loaded and unloaded. */
int etrace_state_init(void);
void etrace_state_deinit(void);

/* A session begins. Process context. */
void etrace_counters_reset(void);
/* Add what all CPUs have counted to `sums` of ETRACE_N_COUNTERS. Any context. */
void etrace_counters_sum(u64 *sums);

#endif /* ETRACE_STATE_H */
