/* SPDX-License-Identifier: GPL-2.0-only */
/* The netlink side of the module. Process context. */
#ifndef ETRACE_CONTROL_SIDE_H
#define ETRACE_CONTROL_SIDE_H

int etrace_control_register(void);
void etrace_control_unregister(void);

#endif /* ETRACE_CONTROL_SIDE_H */
