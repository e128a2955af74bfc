// SPDX-License-Identifier: GPL-2.0-only
/*
 * Generic netlink family `etrace`; include/etrace/control.h describes it. Only the initial network
 * namespace reaches it. START and STOP need CAP_SYS_ADMIN in the initial user namespace, both of
 * the caller and of the process that opened the socket. Process context.
 */
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>

#include "probe/hooks.h"
#include "session/session.h"
#include "state.h"

static struct genl_family family;

static const struct nla_policy policy[ETRACE_N_ATTRIBUTES] = {
	[ETRACE_ATTR_ROOT_PID] = { .type = NLA_U32 },
	[ETRACE_ATTR_CGROUP] = { .type = NLA_NUL_STRING, .len = PATH_MAX - 1 },
	[ETRACE_ATTR_OPTIONS] = { .type = NLA_U32 },
	[ETRACE_ATTR_INSTANCE] = { .type = NLA_NUL_STRING, .len = ETRACE_INSTANCE_BYTES - 1 },
	[ETRACE_ATTR_SESSION] = { .type = NLA_U32 },
};

/* ---- answers ---- */

static int put_u64(struct sk_buff *skb, int attribute, u64 value)
{
	return nla_put_u64_64bit(skb, attribute, value, ETRACE_ATTR_PAD);
}

static int put_counters(struct sk_buff *skb, const u64 *counters)
{
	struct nlattr *nest = nla_nest_start(skb, ETRACE_ATTR_COUNTERS);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < ETRACE_N_COUNTERS; i++)
		if (nla_put(skb, i + 1, sizeof(u64), &counters[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_missing_probes(struct sk_buff *skb)
{
	const char *name;
	unsigned int n;

	for (n = 0; (name = etrace_hooks_missing(n)); n++)
		if (nla_put_string(skb, ETRACE_ATTR_MISSING_PROBE, name))
			return -EMSGSIZE;
	return 0;
}

static int put_status(struct sk_buff *skb, const struct etrace_session_status *status)
{
	if (nla_put_u32(skb, ETRACE_ATTR_STATE, status->state))
		return -EMSGSIZE;
	if (!status->number)
		return 0;
	if (nla_put_u32(skb, ETRACE_ATTR_SESSION, status->number) ||
	    nla_put_u32(skb, ETRACE_ATTR_OPTIONS, status->options) ||
	    nla_put_u32(skb, ETRACE_ATTR_OWNER_PID, status->owner_pid) ||
	    nla_put_string(skb, ETRACE_ATTR_INSTANCE, status->instance) ||
	    put_u64(skb, ETRACE_ATTR_ROOT_UPID, status->root_upid) ||
	    put_u64(skb, ETRACE_ATTR_STARTED_NS, status->started_ns) ||
	    put_counters(skb, status->counters) || put_missing_probes(skb))
		return -EMSGSIZE;
	return 0;
}

static int answer(struct genl_info *info, u8 command, const struct etrace_session_status *status,
		  int (*put)(struct sk_buff *skb, const struct etrace_session_status *status))
{
	struct sk_buff *skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	void *header;

	if (!skb)
		return -ENOMEM;
	header = genlmsg_put_reply(skb, info, &family, 0, command);
	if (!header || put(skb, status)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return genlmsg_reply(skb, info);
}

static int put_started(struct sk_buff *skb, const struct etrace_session_status *status)
{
	if (nla_put_u32(skb, ETRACE_ATTR_SESSION, status->number) ||
	    put_u64(skb, ETRACE_ATTR_ROOT_UPID, status->root_upid))
		return -EMSGSIZE;
	return put_missing_probes(skb);
}

/* ---- commands ---- */

static int check_allowed(struct sk_buff *skb, struct genl_info *info)
{
	if (netlink_capable(skb, CAP_SYS_ADMIN))
		return 0;
	NL_SET_ERR_MSG(info->extack, "needs CAP_SYS_ADMIN in the initial user namespace");
	return -EPERM;
}

static bool is_instance_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

static struct task_struct *get_task(u32 pid)
{
	struct task_struct *task;

	rcu_read_lock();
	task = pid_task(find_vpid((int)pid), PIDTYPE_PID);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();
	return task;
}

static int read_request(struct genl_info *info, struct etrace_session_request *request)
{
	struct nlattr **attributes = info->attrs;

	request->owner_portid = info->snd_portid;
	request->instance = ETRACE_INSTANCE_DEFAULT;
	if (attributes[ETRACE_ATTR_INSTANCE])
		request->instance = nla_data(attributes[ETRACE_ATTR_INSTANCE]);
	if (attributes[ETRACE_ATTR_OPTIONS])
		request->options = nla_get_u32(attributes[ETRACE_ATTR_OPTIONS]);
	if (attributes[ETRACE_ATTR_CGROUP])
		request->cgroup = nla_data(attributes[ETRACE_ATTR_CGROUP]);
	if (!is_instance_name(request->instance))
		NL_SET_ERR_MSG(info->extack, "INSTANCE must be the name of one directory");
	else if (request->options & ~(u32)ETRACE_OPTIONS_ALL)
		NL_SET_ERR_MSG(info->extack, "OPTIONS has a bit that this module does not know");
	else if (request->cgroup && request->options & ETRACE_OPTION_UNPRIVILEGED)
		NL_SET_ERR_MSG(info->extack, "UNPRIVILEGED needs ROOT_PID");
	else if (!request->cgroup == !attributes[ETRACE_ATTR_ROOT_PID])
		NL_SET_ERR_MSG(info->extack, "give either ROOT_PID or CGROUP");
	else
		return 0;
	return -EINVAL;
}

/* NL_SET_ERR_MSG() takes literals: these are, and the module stays until they are sent. */
static void say(struct genl_info *info, const char *reason)
{
	if (info->extack)
		info->extack->_msg = reason;
}

static int start(struct genl_info *info, const struct etrace_session_request *request)
{
	struct etrace_session_status status;
	const char *reason = NULL;
	int err = etrace_session_start(request, &status, &reason);

	if (!err)
		return answer(info, ETRACE_CMD_START, &status, put_started);
	say(info, reason);
	return err;
}

static int do_start(struct sk_buff *skb, struct genl_info *info)
{
	struct etrace_session_request request = {};
	int err = check_allowed(skb, info);

	if (!err)
		err = read_request(info, &request);
	if (err)
		return err;
	if (!request.cgroup) {
		request.root = get_task(nla_get_u32(info->attrs[ETRACE_ATTR_ROOT_PID]));
		if (!request.root) {
			NL_SET_ERR_MSG(info->extack, "no process ROOT_PID in your pid namespace");
			return -ESRCH;
		}
	}
	err = start(info, &request);
	if (request.root)
		put_task_struct(request.root);
	return err;
}

/*
 * A STOP that will be answered later, by messages that are made before anything ends: there is
 * memory for them then. `ack` is what netlink itself would have sent after the answer.
 */
struct stop_request {
	struct etrace_session_waiter waiter;
	struct sk_buff *answer;
	void *header; /* in it */
	struct sk_buff *ack; /* NULL: was not asked for */
	struct nlmsgerr *error; /* in it */
};

static void stop_request_free(struct stop_request *request)
{
	nlmsg_free(request->answer);
	nlmsg_free(request->ack);
	kfree(request);
}

static int make_ack(struct stop_request *request, const struct genl_info *info)
{
	struct nlmsghdr *header;

	if (!(info->nlhdr->nlmsg_flags & NLM_F_ACK))
		return 0;
	request->ack = nlmsg_new(sizeof(*request->error), GFP_KERNEL);
	if (!request->ack)
		return -ENOMEM;
	header = nlmsg_put(request->ack, info->snd_portid, info->snd_seq, NLMSG_ERROR,
			   sizeof(*request->error), NLM_F_CAPPED);
	if (!header)
		return -EMSGSIZE;
	request->error = nlmsg_data(header);
	*request->error = (struct nlmsgerr){ .msg = *info->nlhdr };
	return 0;
}

static int make_answer(struct stop_request *request, struct genl_info *info)
{
	request->answer = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!request->answer)
		return -ENOMEM;
	request->header = genlmsg_put_reply(request->answer, info, &family, 0, ETRACE_CMD_STOP);
	return request->header ? 0 : -EMSGSIZE;
}

/* Nobody may be there any more, or its queue is full: it sees that as with every other answer. */
static void report_stopped(struct etrace_session_waiter *waiter,
			   const struct etrace_session_status *status)
{
	struct stop_request *request = container_of(waiter, struct stop_request, waiter);

	if (status && !put_status(request->answer, status)) {
		genlmsg_end(request->answer, request->header);
		genlmsg_unicast(&init_net, request->answer, waiter->portid);
		request->answer = NULL;
		if (request->ack)
			nlmsg_unicast(init_net.genl_sock, request->ack, waiter->portid);
		request->ack = NULL;
	}
	stop_request_free(request);
}

static int stop(struct genl_info *info, u32 number)
{
	struct stop_request *request = kzalloc(sizeof(*request), GFP_KERNEL);
	const char *reason = NULL;
	int err;

	if (!request)
		return -ENOMEM;
	request->waiter.portid = info->snd_portid;
	request->waiter.say = report_stopped;
	err = make_answer(request, info);
	if (!err)
		err = make_ack(request, info);
	if (!err)
		err = etrace_session_stop(number, &request->waiter, &reason);
	if (err) {
		say(info, reason);
		stop_request_free(request);
	}
	return err;
}

static int do_stop(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *number = info->attrs[ETRACE_ATTR_SESSION];
	int err = check_allowed(skb, info);

	if (!err)
		err = stop(info, number ? nla_get_u32(number) : 0);
	/* so does a dump say to netlink_rcv_skb() that it is not to acknowledge: not yet */
	return err ?: -EINTR;
}

static int do_status(struct sk_buff *skb, struct genl_info *info)
{
	struct etrace_session_status status;

	etrace_session_status(&status);
	return answer(info, ETRACE_CMD_STATUS, &status, put_status);
}

static const struct genl_small_ops operations[] = {
	/* GENL_ADMIN_PERM would ask for CAP_NET_ADMIN, and refuse without a word */
	{ .cmd = ETRACE_CMD_START, .doit = do_start },
	{ .cmd = ETRACE_CMD_STOP, .doit = do_stop },
	{ .cmd = ETRACE_CMD_STATUS, .doit = do_status },
};

static const struct genl_multicast_group groups[] = {
	{ .name = ETRACE_GENL_GROUP },
};

static struct genl_family family __ro_after_init = {
	.name = ETRACE_GENL_NAME,
	.version = ETRACE_GENL_VERSION,
	.module = THIS_MODULE,
	.parallel_ops = true, /* the session has its own lock */
	.maxattr = ETRACE_N_ATTRIBUTES - 1,
	.policy = policy,
	.small_ops = operations,
	.n_small_ops = ARRAY_SIZE(operations),
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
};

/* ---- notices ---- */

/* Lost when nobody listens. */
static void notify(u32 session, enum etrace_notice notice)
{
	struct sk_buff *skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	void *header;

	if (!skb)
		return;
	header = genlmsg_put(skb, 0, 0, &family, 0, ETRACE_CMD_NOTIFY);
	if (!header || nla_put_u32(skb, ETRACE_ATTR_NOTICE, notice) ||
	    nla_put_u32(skb, ETRACE_ATTR_SESSION, session)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, header);
	genlmsg_multicast(&family, skb, 0, 0, GFP_KERNEL);
}

/* ---- the owner ---- */

static int socket_event(struct notifier_block *block, unsigned long event, void *data)
{
	const struct netlink_notify *notify = data;

	if (event == NETLINK_URELEASE && notify->protocol == NETLINK_GENERIC &&
	    net_eq(notify->net, &init_net))
		etrace_session_owner_gone(notify->portid);
	return NOTIFY_DONE;
}

static struct notifier_block socket_notifier = { .notifier_call = socket_event };

int etrace_control_register(void)
{
	int err;

	etrace_notice_init(notify);
	err = netlink_register_notifier(&socket_notifier);
	if (err)
		return err;
	err = genl_register_family(&family);
	if (err)
		netlink_unregister_notifier(&socket_notifier);
	return err;
}

void etrace_control_unregister(void)
{
	genl_unregister_family(&family);
	netlink_unregister_notifier(&socket_notifier);
}
