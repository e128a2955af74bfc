// SPDX-License-Identifier: Apache-2.0
/* A binary heap by time, and of equal times by arrival. */
#include "order.h"

#include <stdlib.h>

#include "tracer.h"

static struct event **heap;
static size_t n_events;
static size_t n_max;

static bool is_before(const struct event *a, const struct event *b)
{
	if (a->head.time_ns != b->head.time_ns)
		return a->head.time_ns < b->head.time_ns;
	return a->order < b->order;
}

void order_add(struct event *event)
{
	size_t at = n_events++;

	if (n_events > n_max) {
		n_max = n_max ? 2 * n_max : 1024;
		heap = must_realloc(heap, n_max * sizeof(*heap));
	}
	for (; at && is_before(event, heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = event;
}

static void sink(struct event *event)
{
	size_t at = 0;
	size_t child;

	while ((child = 2 * at + 1) < n_events) {
		if (child + 1 < n_events && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], event))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = event;
}

struct event *order_take(uint64_t limit)
{
	struct event *first;

	if (!n_events || heap[0]->head.time_ns > limit)
		return NULL;
	first = heap[0];
	if (--n_events)
		sink(heap[n_events]);
	return first;
}
