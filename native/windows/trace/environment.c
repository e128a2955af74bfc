// SPDX-License-Identifier: Apache-2.0
/* Which process had which variable. */
#include "trace/environment.h"

#include <stdlib.h>

#include "text/lines.h"

#define FIRST_SLOTS 1024

struct variable {
	struct buffer text;
	struct buffer upids; /* int64_t */
};

static size_t slot_of(const struct environment *environment, struct text text)
{
	uint64_t hash = 1469598103934665603u; /* FNV-1a */
	size_t slot;

	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * 1099511628211u;
	slot = hash & (environment->n_slots - 1);
	while (environment->slots[slot]) {
		struct text other = buffer_text(&environment->slots[slot]->text);

		if (other.len == text.len && !memcmp(other.data, text.data, text.len))
			break;
		slot = (slot + 1) & (environment->n_slots - 1);
	}
	return slot;
}

static void grow(struct environment *environment)
{
	struct environment old = *environment;
	size_t n = old.n_slots ? old.n_slots * 2 : FIRST_SLOTS;

	if (old.n_slots > old.n_variables * 2)
		return;
	environment->slots = must_realloc(NULL, n * sizeof(*environment->slots));
	memset(environment->slots, 0, n * sizeof(*environment->slots));
	environment->n_slots = n;
	for (size_t i = 0; i < old.n_slots; i++) {
		if (old.slots[i])
			environment->slots[slot_of(environment, buffer_text(&old.slots[i]->text))] =
				old.slots[i];
	}
	free(old.slots);
}

void environment_add(struct environment *environment, int64_t upid, const struct words *variables)
{
	size_t n = words_count(variables);

	for (size_t i = 0; i < n; i++) {
		struct text text = words_at(variables, i);
		size_t slot;

		grow(environment);
		slot = slot_of(environment, text);
		if (!environment->slots[slot]) {
			struct variable *variable = must_realloc(NULL, sizeof(*variable));

			*variable = (struct variable){ 0 };
			buffer_add_text(&variable->text, text);
			environment->slots[slot] = variable;
			environment->n_variables++;
		}
		buffer_add(&environment->slots[slot]->upids, &upid, sizeof(upid));
	}
}

bool environment_next(const struct environment *environment, size_t *at, uint64_t time_ns,
		      struct buffer *out)
{
	for (; *at < environment->n_slots; ++*at) {
		const struct variable *variable = environment->slots[*at];

		if (!variable)
			continue;
		lines_variable(out, (const int64_t *)(const void *)variable->upids.data,
			       variable->upids.len / sizeof(int64_t), time_ns,
			       buffer_text(&variable->text));
		++*at;
		return true;
	}
	return false;
}

void environment_free(struct environment *environment)
{
	for (size_t i = 0; i < environment->n_slots; i++) {
		if (!environment->slots[i])
			continue;
		buffer_free(&environment->slots[i]->text);
		buffer_free(&environment->slots[i]->upids);
		free(environment->slots[i]);
	}
	free(environment->slots);
}
