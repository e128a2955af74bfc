// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* See genl.h. Facts: netlink(7), Documentation/userspace-api/netlink. */
#define _GNU_SOURCE
#include "genl.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct names {
	const char *group;
	uint16_t family;
	uint32_t group_id;
	bool matches; /* of the group being read */
	uint32_t id;
};

char genl_said[128];

static struct nlmsghdr *header(const struct genl_message *message)
{
	return (struct nlmsghdr *)message->bytes;
}

void genl_begin(struct genl *genl, struct genl_message *message, uint8_t command)
{
	struct genlmsghdr *generic = (struct genlmsghdr *)(message->bytes + NLMSG_HDRLEN);

	memset(message, 0, NLMSG_HDRLEN + GENL_HDRLEN);
	*header(message) = (struct nlmsghdr){
		.nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN,
		.nlmsg_type = genl->family,
		.nlmsg_flags = NLM_F_REQUEST | (genl->unacknowledged ? 0 : NLM_F_ACK),
		.nlmsg_seq = ++genl->sequence,
	};
	*generic = (struct genlmsghdr){ .cmd = command, .version = 1 };
}

void genl_put(struct genl_message *message, uint16_t type, const void *value, size_t len)
{
	struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };
	char *end = message->bytes + header(message)->nlmsg_len;

	if (end + NLA_HDRLEN + NLA_ALIGN(len) > message->bytes + sizeof(message->bytes))
		abort();
	memset(end, 0, NLA_HDRLEN + NLA_ALIGN(len));
	memcpy(end, &attribute, sizeof(attribute));
	memcpy(end + NLA_HDRLEN, value, len);
	header(message)->nlmsg_len += (uint32_t)(NLA_HDRLEN + NLA_ALIGN(len));
}

void genl_put_u32(struct genl_message *message, uint16_t type, uint32_t value)
{
	genl_put(message, type, &value, sizeof(value));
}

void genl_put_string(struct genl_message *message, uint16_t type, const char *text)
{
	genl_put(message, type, text, strlen(text) + 1);
}

void genl_attributes(const void *bytes, size_t len, genl_attribute_fn *each, void *argument)
{
	const char *at = bytes;

	while (len >= NLA_HDRLEN) {
		struct nlattr attribute;

		memcpy(&attribute, at, sizeof(attribute));
		if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > len)
			return;
		each(attribute.nla_type & NLA_TYPE_MASK, at + NLA_HDRLEN,
		     attribute.nla_len - NLA_HDRLEN, argument);
		if ((size_t)NLA_ALIGN(attribute.nla_len) >= len)
			return;
		at += NLA_ALIGN(attribute.nla_len);
		len -= NLA_ALIGN(attribute.nla_len);
	}
}

/* One datagram; its messages follow each other in it. */
static ssize_t receive(struct genl *genl, struct genl_message *message)
{
	ssize_t len;

	do
		len = recv(genl->fd, message->bytes, sizeof(message->bytes), 0);
	while (len < 0 && errno == EINTR);
	return len < 0 ? -errno : len;
}

static void read_message(const struct nlmsghdr *nlmsg, genl_attribute_fn *each, void *argument)
{
	size_t heads = NLMSG_HDRLEN + GENL_HDRLEN;

	if (each && nlmsg->nlmsg_len >= heads)
		genl_attributes((const char *)nlmsg + heads, nlmsg->nlmsg_len - heads, each,
				argument);
}

static void read_said(uint16_t type, const void *value, size_t len, void *argument)
{
	(void)argument;
	if (type == NLMSGERR_ATTR_MSG && len)
		snprintf(genl_said, sizeof(genl_said), "%.*s", (int)len - 1, (const char *)value);
}

/* What the acknowledgment says; the request follows, whole if it was refused. */
static int read_ack(const struct nlmsghdr *nlmsg)
{
	const struct nlmsgerr *ack = NLMSG_DATA(nlmsg);
	size_t heads = NLMSG_HDRLEN + sizeof(*ack);

	if (!(nlmsg->nlmsg_flags & NLM_F_CAPPED))
		heads += ack->msg.nlmsg_len - NLMSG_HDRLEN;
	*genl_said = '\0';
	if (nlmsg->nlmsg_flags & NLM_F_ACK_TLVS && nlmsg->nlmsg_len > heads)
		genl_attributes((const char *)nlmsg + heads, nlmsg->nlmsg_len - heads, read_said,
				NULL);
	return ack->error;
}

int genl_ask(struct genl *genl, const struct genl_message *request, genl_attribute_fn *each,
	     void *argument)
{
	struct genl_message answer;

	if (send(genl->fd, request->bytes, header(request)->nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t len = receive(genl, &answer);

		if (len < 0)
			return (int)len;
		for (struct nlmsghdr *nlmsg = header(&answer); NLMSG_OK(nlmsg, (size_t)len);
		     nlmsg = NLMSG_NEXT(nlmsg, len)) {
			if (nlmsg->nlmsg_seq != genl->sequence)
				continue;
			if (nlmsg->nlmsg_type == NLMSG_ERROR)
				return read_ack(nlmsg);
			read_message(nlmsg, each, argument);
			if (genl->unacknowledged)
				return 0;
		}
	}
}

int genl_next_notice(struct genl *genl, int timeout_ms, genl_attribute_fn *each, void *argument)
{
	struct pollfd ready = { .fd = genl->fd, .events = POLLIN };
	struct genl_message notice;
	ssize_t len;

	if (poll(&ready, 1, timeout_ms) <= 0)
		return -EAGAIN;
	len = receive(genl, &notice);
	if (len < 0)
		return (int)len;
	if (!NLMSG_OK(header(&notice), (size_t)len) || header(&notice)->nlmsg_type != genl->family)
		return -EPROTO;
	read_message(header(&notice), each, argument);
	return notice.bytes[NLMSG_HDRLEN];
}

static void read_group(uint16_t type, const void *value, size_t len, void *argument)
{
	struct names *names = argument;

	if (type == CTRL_ATTR_MCAST_GRP_ID && len == sizeof(uint32_t))
		memcpy(&names->id, value, len);
	if (type == CTRL_ATTR_MCAST_GRP_NAME)
		names->matches = len && !strcmp(value, names->group);
}

static void read_groups(uint16_t type, const void *value, size_t len, void *argument)
{
	struct names *names = argument;

	(void)type;
	names->matches = false;
	genl_attributes(value, len, read_group, names);
	if (names->matches)
		names->group_id = names->id;
}

static void read_family(uint16_t type, const void *value, size_t len, void *argument)
{
	struct names *names = argument;

	if (type == CTRL_ATTR_FAMILY_ID && len == sizeof(names->family))
		memcpy(&names->family, value, len);
	if (type == CTRL_ATTR_MCAST_GROUPS)
		genl_attributes(value, len, read_groups, names);
}

int genl_open(struct genl *genl, const char *family, const char *group)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	struct names names = { .group = group };
	struct genl_message message;
	int error, yes = 1;

	*genl = (struct genl){ .family = GENL_ID_CTRL };
	genl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (genl->fd < 0 || bind(genl->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	setsockopt(genl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &yes, sizeof(yes));
	genl_begin(genl, &message, CTRL_CMD_GETFAMILY);
	genl_put_string(&message, CTRL_ATTR_FAMILY_NAME, family);
	error = genl_ask(genl, &message, read_family, &names);
	genl->family = names.family;
	genl->group = names.group_id;
	return error;
}

void genl_close(struct genl *genl)
{
	close(genl->fd);
}

int genl_join(struct genl *genl)
{
	if (!genl->group)
		return -ENOENT;
	if (setsockopt(genl->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &genl->group,
		       sizeof(genl->group)) < 0)
		return -errno;
	return 0;
}
