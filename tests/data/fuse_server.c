// SPDX-License-Identifier: Apache-2.0
/*
 * A file system of one directory, served by the process that uses it: `fuse_server MOUNT_POINT`.
 *
 * The server makes calls that a tracer stops (dup, close) while the kernel waits for its answer, and
 * lets the kernel cache nothing, so whoever waits for the file system while it has the server in a
 * stop waits forever. The client executes a script of it, renames and links. Facts:
 * linux/fuse.h, fuse(4).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT "#!/bin/sh\nexit 7\n"
#define SCRIPT_NODE 2
#define MAX_REQUEST (1 << 17)

static int device;
static char script_name[NAME_MAX + 1] = "script";
static char link_name[NAME_MAX + 1];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t size)
{
	static char out[MAX_REQUEST];
	struct fuse_out_header header = { sizeof(header), -error, in->unique };

	if (!error)
		header.len += size;
	memcpy(out, &header, sizeof(header));
	if (!error && size)
		memcpy(out + sizeof(header), data, size);
	if (write(device, out, header.len) < 0 && errno != ENOENT)
		die("reply");
}

static struct fuse_attr attributes(unsigned long node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 512 };

	attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755;
	attr.size = node == FUSE_ROOT_ID ? 0 : sizeof(SCRIPT) - 1;
	return attr;
}

static void serve_name(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out entry = { .nodeid = SCRIPT_NODE };

	if (strcmp(name, script_name) && strcmp(name, link_name)) {
		reply(in, ENOENT, NULL, 0);
		return;
	}
	entry.attr = attributes(SCRIPT_NODE);
	reply(in, 0, &entry, sizeof(entry));
}

static void serve_init(const struct fuse_in_header *in, const struct fuse_init_in *asked)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_readahead = asked->max_readahead, .max_write = 4096 };

	reply(in, 0, &out, sizeof(out));
}

static void keep_name(char kept[NAME_MAX + 1], const char *name)
{
	strncpy(kept, name, NAME_MAX);
}

static void serve_rename(const struct fuse_in_header *in, const char *names)
{
	keep_name(script_name, names + strlen(names) + 1);
	reply(in, 0, NULL, 0);
}

static void serve_link(const struct fuse_in_header *in, const char *name)
{
	keep_name(link_name, name);
	serve_name(in, name);
}

static void serve_one(const struct fuse_in_header *in, const char *body)
{
	struct fuse_attr_out attr = { .attr = attributes(in->nodeid) };
	struct fuse_open_out opened = { .fh = 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		serve_init(in, (const void *)body);
		break;
	case FUSE_LOOKUP:
		serve_name(in, body);
		break;
	case FUSE_GETATTR:
		reply(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		if (((const struct fuse_read_in *)(const void *)body)->offset)
			reply(in, 0, NULL, 0);
		else
			reply(in, 0, SCRIPT, sizeof(SCRIPT) - 1);
		break;
	case FUSE_RENAME:
		serve_rename(in, body + sizeof(struct fuse_rename_in));
		break;
	case FUSE_RENAME2:
		serve_rename(in, body + sizeof(struct fuse_rename2_in));
		break;
	case FUSE_LINK:
		serve_link(in, body + sizeof(struct fuse_link_in));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(in, ENOSYS, NULL, 0);
	}
}

/* Answer until the mount is gone. */
static void serve(void)
{
	static char request[MAX_REQUEST] __attribute__((aligned(8)));
	ssize_t len;

	while ((len = read(device, request, sizeof(request))) > 0 || errno == EINTR) {
		if (len <= 0)
			continue;
		close(dup(device)); /* two calls that a tracer sees */
		serve_one((const void *)request, request + sizeof(struct fuse_in_header));
	}
	_exit(0);
}

static int run_script(const char *script)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl(script, script, (char *)NULL);
		die(script);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int use(const char *folder)
{
	int fd;

	if (chdir(folder) < 0)
		die(folder);
	if (run_script("./script") != 7)
		return 2;
	if (rename("script", "renamed") < 0 || link("renamed", "linked") < 0)
		die("rename or link");
	fd = open("linked", O_RDONLY);
	if (fd < 0 || symlink("renamed", "symlinked") == 0)
		return 3;
	close(fd);
	return run_script("./linked");
}

int main(int argc, char **argv)
{
	char options[128];
	pid_t server;
	int status;

	device = open("/dev/fuse", O_RDWR);
	if (device < 0 || argc != 2)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=%d,group_id=%d", device,
		 getuid(), getgid());
	if (mount("etrace-test", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		die("mount");
	server = fork();
	if (server == 0)
		serve();
	status = use(argv[1]);
	if (chdir("/") < 0 || umount2(argv[1], MNT_DETACH) < 0)
		die("umount");
	close(device);
	waitpid(server, NULL, 0);
	return status;
}
