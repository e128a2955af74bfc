/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Generic netlink over a raw socket: requests with attributes, their answers, and notices of a
 * group. Shares no code with the module's own clients, so that it can contradict them.
 */
#ifndef GENL_H
#define GENL_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct genl {
	int fd;
	uint32_t sequence;
	uint16_t family;
	uint32_t group; /* id of the family's only group */
	bool unacknowledged; /* ask for no acknowledgment: requests end with their answer */
};

struct genl_message {
	_Alignas(NLMSG_ALIGNTO) char bytes[16384];
};

/* What the kernel said to the last request that it refused, or nothing. */
extern char genl_said[128];

typedef void genl_attribute_fn(uint16_t type, const void *value, size_t len, void *argument);

/* Connect and look the family up. -errno; -ENOENT: no such family, the module is not loaded. */
int genl_open(struct genl *genl, const char *family, const char *group);
void genl_close(struct genl *genl);

void genl_begin(struct genl *genl, struct genl_message *message, uint8_t command);
void genl_put(struct genl_message *message, uint16_t type, const void *value, size_t len);
void genl_put_u32(struct genl_message *message, uint16_t type, uint32_t value);
void genl_put_string(struct genl_message *message, uint16_t type, const char *text);

/*
 * Send `message` and call `each` for the attributes of its answer, if it has one, until the kernel
 * acknowledges. Returns 0 or the kernel's -errno. Notices that arrive meanwhile are dropped.
 */
int genl_ask(struct genl *genl, const struct genl_message *message, genl_attribute_fn *each,
	     void *argument);

int genl_join(struct genl *genl);
/* The next notice: its command, or -errno (-EAGAIN after `timeout_ms`; negative: forever). */
int genl_next_notice(struct genl *genl, int timeout_ms, genl_attribute_fn *each, void *argument);

/* Call `each` for the attributes in `bytes`. */
void genl_attributes(const void *bytes, size_t len, genl_attribute_fn *each, void *argument);

#endif /* GENL_H */
