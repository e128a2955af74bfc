/* SPDX-License-Identifier: GPL-2.0-only */
/* What the module tells its listeners by itself: raised in any context, sent from a workqueue. */
#ifndef ETRACE_NOTICE_H
#define ETRACE_NOTICE_H

#include <linux/types.h>

#include "etrace/control.h"

/* Set the function that sends notices; before the first session. Process context. */
void etrace_notice_init(void (*sender)(u32 session, enum etrace_notice notice));
/* Send `notice` of the running session from a workqueue. Any context, locks held or not. */
void etrace_notice(enum etrace_notice notice);
/* ETRACE_NOTICE_LOSS, once a session. Any context. */
void etrace_notice_loss(void);
/* A new session: no notice has been sent yet. Process context. */
void etrace_notice_reset(u32 session);
/* Send waiting notices now. Process context. */
void etrace_notice_flush(void);

#endif /* ETRACE_NOTICE_H */
