// SPDX-License-Identifier: GPL-2.0-only
/*
 * The session that runs, as all parts see it; session/session.c writes it. Notices to the listeners
 * of the multicast group: probes raise them in atomic context, a workqueue sends them, by the
 * function that session/control.c has given.
 */
#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "state.h"

u32 etrace_options;
u32 etrace_session;
struct etrace_counters __percpu *etrace_counters;

int etrace_state_init(void)
{
	etrace_counters = alloc_percpu(struct etrace_counters);
	return etrace_counters ? 0 : -ENOMEM;
}

void etrace_state_deinit(void)
{
	free_percpu(etrace_counters);
}

void etrace_counters_reset(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(etrace_counters, cpu), 0, sizeof(struct etrace_counters));
}

void etrace_counters_sum(u64 *sums)
{
	int cpu, i;

	for_each_possible_cpu(cpu)
		for (i = 0; i < ETRACE_N_COUNTERS; i++)
			sums[i] += READ_ONCE(per_cpu_ptr(etrace_counters, cpu)->n[i]);
}

/* ---- notices ---- */

static unsigned long raised; /* bits: enum etrace_notice */
static unsigned long sent;
static u32 noticed_session;
static void (*send)(u32 session, enum etrace_notice notice);

void etrace_notice_init(void (*sender)(u32 session, enum etrace_notice notice))
{
	send = sender;
}

static void send_raised(struct work_struct *work)
{
	unsigned int notice;

	for (notice = ETRACE_NOTICE_LOSS; notice <= ETRACE_NOTICE_STOPPED; notice++)
		if (test_and_clear_bit(notice, &raised))
			send(noticed_session, notice);
}

static DECLARE_WORK(send_work, send_raised);

void etrace_notice(enum etrace_notice notice)
{
	set_bit(notice, &raised);
	schedule_work(&send_work);
}

void etrace_notice_loss(void)
{
	if (!test_bit(ETRACE_NOTICE_LOSS, &sent) && !test_and_set_bit(ETRACE_NOTICE_LOSS, &sent))
		etrace_notice(ETRACE_NOTICE_LOSS);
}

void etrace_notice_flush(void)
{
	flush_work(&send_work);
}

void etrace_notice_reset(u32 session)
{
	etrace_notice_flush(); /* those of the last one bear its number */
	noticed_session = session;
	sent = 0;
}
