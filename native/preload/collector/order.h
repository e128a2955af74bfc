/* SPDX-License-Identifier: Apache-2.0 */
/* Records of all processes -> records in the order of time. */
#ifndef ETRACE_PRELOAD_ORDER_H
#define ETRACE_PRELOAD_ORDER_H

#include "ring_file.h"

void order_add(struct event *event);

/* The earliest record if its time is not after `limit`, else NULL. */
struct event *order_take(uint64_t limit);

#endif /* ETRACE_PRELOAD_ORDER_H */
