// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of the calls that rename, link and mount: those that a security hook of the kernel saw,
 * kept until the call ends, or else those that are found afterwards. Context: kprobes and sys_exit
 * (atomic); task_work for finding.
 */
#include <linux/slab.h>

#include "event/call.h"
#include "event/names.h"
#include "event/path.h"
#include "event/resolve.h"

u32 etrace_firing_hooks;

void etrace_names_keep(struct etrace_task *entry, enum etrace_call_kind kind,
		       const struct etrace_text *texts)
{
	struct etrace_names *names;
	size_t bytes = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names->text); i++)
		bytes += texts[i].len;
	names = kmalloc(struct_size(names, bytes, bytes), GFP_ATOMIC | __GFP_NOWARN);
	if (!names) /* its end looks the names up instead */
		return;
	names->kind = kind;
	bytes = 0;
	for (i = 0; i < ARRAY_SIZE(names->text); i++) {
		char *copy = names->bytes + bytes;

		memcpy(copy, texts[i].text, texts[i].len);
		names->text[i] = (struct etrace_text){ texts[i].text ? copy : NULL, texts[i].len };
		bytes += texts[i].len;
	}
	etrace_names_free(entry); /* of a call begun again */
	entry->names = names;
}

struct etrace_names *etrace_names_take(struct etrace_task *entry, enum etrace_call_kind kind)
{
	struct etrace_names *names = entry->names;

	entry->names = NULL;
	if (names)
		entry->hooked = false;
	if (!names || names->kind == kind)
		return names;
	kfree(names);
	return NULL;
}

bool etrace_was_made(const struct etrace_task *entry, enum etrace_hook hook)
{
	return entry->hooked || !etrace_may_be_made_up() ||
	       !(READ_ONCE(etrace_firing_hooks) & hook);
}

struct etrace_text etrace_find_name(int dirfd, u64 address, bool follow, char *scratch, char *buf)
{
	struct etrace_text text = etrace_resolve(dirfd, address, follow, true, scratch, buf);

	return text.text ? text : etrace_given_path(dirfd, address, scratch, buf);
}

/* No hook has seen the call: it is made up when no such name is there. */
struct etrace_text etrace_find_made(const struct etrace_task *entry, int dirfd, u64 address,
				    char *scratch, char *buf)
{
	if (entry->hooked || !etrace_may_be_made_up())
		return etrace_find_name(dirfd, address, false, scratch, buf);
	return etrace_resolve(dirfd, address, false, false, scratch, buf);
}
