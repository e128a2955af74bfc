// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notices to the listeners of the multicast group. Probes raise them in atomic context; a workqueue
 * sends them, by the function that session/control.c has given.
 */
#include <linux/bitops.h>
#include <linux/workqueue.h>

#include "notice.h"

static unsigned long raised; /* bits: enum etrace_notice */
static unsigned long told;
static u32 session;
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
			send(session, notice);
}

static DECLARE_WORK(send_work, send_raised);

void etrace_notice(enum etrace_notice notice)
{
	set_bit(notice, &raised);
	schedule_work(&send_work);
}

void etrace_notice_loss(void)
{
	if (!test_bit(ETRACE_NOTICE_LOSS, &told) && !test_and_set_bit(ETRACE_NOTICE_LOSS, &told))
		etrace_notice(ETRACE_NOTICE_LOSS);
}

void etrace_notice_flush(void)
{
	flush_work(&send_work);
}

void etrace_notice_reset(u32 new_session)
{
	etrace_notice_flush(); /* those of the last one bear its number */
	session = new_session;
	told = 0;
}
