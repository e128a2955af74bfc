// SPDX-License-Identifier: Apache-2.0
/* The tasks that live, by the number that the kernel's records have for them. */
#include "bpf/trace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "capture/program.h"

#define N_BUCKETS 4096

static struct traced *buckets[N_BUCKETS];
static size_t n_tasks;
static s64 last_number;

static struct traced **bucket_of(u64 key)
{
	return &buckets[(key * 0x9e3779b97f4a7c15u) >> 52];
}

struct traced *traced_find(u64 key)
{
	struct traced *task;

	for (task = *bucket_of(key); task; task = task->next)
		if (task->key == key)
			return task;
	return NULL;
}

struct traced *traced_add(u64 key, pid_t pid, u64 leader)
{
	struct traced **bucket = bucket_of(key);
	struct traced *task = traced_find(key);

	if (task)
		traced_remove(task);
	task = must_alloc(sizeof(*task));
	memset(task, 0, sizeof(*task));
	task->key = key;
	task->pid = pid;
	task->leader = leader;
	task->upid = ++last_number << ETRACE_UPID_PID_BITS | pid;
	task->next = *bucket;
	*bucket = task;
	n_tasks++;
	if (key == leader)
		counters.processes++;
	else
		counters.threads++;
	return task;
}

struct root *root_hold(struct root *root)
{
	if (root)
		root->refs++;
	return root;
}

void root_release(struct root *root)
{
	if (root && !--root->refs) {
		close(root->fd);
		free(root);
	}
}

void traced_remove(struct traced *task)
{
	struct traced **place = bucket_of(task->key);

	while (*place != task)
		place = &(*place)->next;
	*place = task->next;
	n_tasks--;
	root_release(task->root);
	execution_free(task);
	free(task->closing);
	free((char *)task->exec_name.text);
	traced_forget_rights(task);
	free(task);
}

void traced_for_each(void (*visit)(struct traced *task))
{
	size_t i;

	for (i = 0; i < N_BUCKETS; i++) {
		struct traced *task, *next;

		for (task = buckets[i]; task; task = next) {
			next = task->next;
			visit(task);
		}
	}
}

/* What statx() and the kernel's record both say of a directory. */
static bool know(int fd, struct record_root *known_by)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &st) < 0 ||
	    !(st.stx_mask & STATX_MNT_ID))
		return false;
	known_by->inode = st.stx_ino;
	known_by->mount = (u32)st.stx_mnt_id;
	known_by->is_mounted = (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
	return true;
}

/* A file system may show other numbers of inodes than it has: the root of a mount is known without. */
static bool is_same(const struct record_root *a, const struct record_root *b)
{
	return a->mount == b->mount && a->is_mounted == b->is_mounted && (a->is_mounted || a->inode == b->inode);
}

void traced_take_root(struct traced *task)
{
	char name[PROC_NAME_MAX];
	struct root *root;
	int fd;

	proc_name(name, task->pid, "root");
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	root = must_alloc(sizeof(*root));
	memset(root, 0, sizeof(*root));
	root->refs = 1;
	root->fd = fd;
	root_release(task->root);
	task->root = root;
	if (know(fd, &root->known_by))
		return;
	root_release(root);
	task->root = NULL;
}

/* ---- rights ---- */

_Static_assert(RECORD_MOST_GROUPS == RIGHTS_MOST_GROUPS, "the groups of a record fit");

void traced_note_rights(struct traced *task, const struct record *record, const struct etrace_text strings[2])
{
	const s64 *values = record->values;
	struct task_rights *noted = task->rights;

	if (values[3] < 0 || strings[0].len > sizeof(noted->rights.groups) ||
	    strings[1].len != sizeof(noted->root)) {
		traced_forget_rights(task);
		return;
	}
	if (!noted)
		noted = task->rights = must_alloc(sizeof(*noted));
	noted->rights.uid = (unsigned int)values[0];
	noted->rights.gid = (unsigned int)((u64)values[0] >> 32);
	noted->rights.is_raised = values[1];
	noted->rights.capabilities = (u64)values[2];
	noted->rights.n_groups = strings[0].len / sizeof(noted->rights.groups[0]);
	memcpy(noted->rights.groups, strings[0].text, strings[0].len);
	memcpy(&noted->root, strings[1].text, sizeof(noted->root));
}

void traced_forget_rights(struct traced *task)
{
	free(task->rights);
	task->rights = NULL;
}

/* Whether the root directory that is held is the one of the record; the task may have another by now. */
static bool has_root(const struct traced *task)
{
	return task->root && (!task->rights || is_same(&task->root->known_by, &task->rights->root));
}

struct viewer traced_viewer(struct traced *task, const struct record *record)
{
	struct viewer viewer = { NULL, task->rights ? &task->rights->rights : NULL, false };

	if (!(record->flags & RECORD_FOREIGN))
		return viewer;
	if (!has_root(task))
		traced_take_root(task);
	viewer.is_lost = !has_root(task);
	viewer.root = viewer.is_lost ? NULL : task->root;
	return viewer;
}

size_t traced_count(void)
{
	return n_tasks;
}
