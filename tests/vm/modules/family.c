// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that registers a generic netlink family and nothing else: whoever keeps it waiting holds
 * the lock of generic netlink.
 */
#include <linux/module.h>
#include <net/genetlink.h>

static struct genl_family family __ro_after_init = {
	.name = "etrace_test",
	.version = 1,
	.module = THIS_MODULE,
};

static int __init family_init(void)
{
	return genl_register_family(&family);
}

static void __exit family_exit(void)
{
	genl_unregister_family(&family);
}

module_init(family_init);
module_exit(family_exit);
MODULE_DESCRIPTION("a generic netlink family");
MODULE_LICENSE("GPL");
