/* SPDX-License-Identifier: GPL-2.0-only */
/* The netlink side of the module. Process context. */
#ifndef ETRACE_CONTROL_SIDE_H
#define ETRACE_CONTROL_SIDE_H

#include "etrace/control.h"

int etrace_control_register(void);
void etrace_control_unregister(void);
/* Multicast; lost when nobody listens. */
void etrace_control_notify(u32 session, enum etrace_notice notice);

#endif /* ETRACE_CONTROL_SIDE_H */
