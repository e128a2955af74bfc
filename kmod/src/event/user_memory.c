// SPDX-License-Identifier: GPL-2.0-only
/*
 * Strings and structures in the task's memory. Context: atomic; task_work for what has to wait
 * until pages are there again.
 */
#include <linux/limits.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>
#include <asm/word-at-a-time.h>

#include "compat.h"
#include "event/user_memory.h"

#define QUICK_BYTES 256 /* of a string that is read without its length being known */

/*
 * Most strings, without what strncpy_from_user() does for all: hardened usercopy takes a lock of
 * the whole machine to look up the per-CPU memory that is written. -EFAULT: for the other to read.
 */
static long quick_string(char *to, const char __user *from)
{
	const struct word_at_a_time constants = WORD_AT_A_TIME_CONSTANTS;
	unsigned long word, zeros;
	size_t n;

	if (!user_read_access_begin(from, QUICK_BYTES))
		return -EFAULT;
	for (n = 0; n < QUICK_BYTES; n += sizeof(word)) {
		unsafe_get_user(word, (const unsigned long __user *)(from + n), fault);
		*(unsigned long *)(to + n) = word;
		if (has_zero(word, &zeros, &constants)) {
			user_read_access_end();
			zeros = prep_zero_mask(word, zeros, &constants);
			return n + find_zero(create_zero_mask(zeros));
		}
	}
fault:
	user_read_access_end();
	return -EFAULT;
}

long etrace_user_string(char *to, u64 address)
{
	long len;

	pagefault_disable();
	len = quick_string(to, u64_to_user_ptr(address));
	if (unlikely(len < 0))
		len = strncpy_from_user(to, u64_to_user_ptr(address), PATH_MAX);
	pagefault_enable();
	return len < PATH_MAX ? len : -ENAMETOOLONG;
}

int etrace_user_bytes(void *to, u64 address, size_t n)
{
	unsigned long left;

	pagefault_disable();
	left = copy_from_user(to, u64_to_user_ptr(address), n);
	pagefault_enable();
	return left ? -EFAULT : 0;
}

/* ---- pages that are away ---- */

#define TRIES 8 /* a page may go again before it is read */
#define LOCK_TRIES 100 /* one tick apart: khugepaged holds the lock for less */

/*
 * Whether the kernel brings the area's pages without asking a program, which may be this task or
 * wait for it (decision 25): those of no file, of files in memory and of files on block devices.
 */
static bool brings_pages_alone(struct vm_area_struct *vma)
{
	const struct super_block *sb;

	if (userfaultfd_armed(vma))
		return false;
	if (!vma->vm_file)
		return vma_is_anonymous(vma);
	if (!S_ISREG(file_inode(vma->vm_file)->i_mode)) /* a driver's */
		return false;
	sb = file_inode(vma->vm_file)->i_sb;
	if (sb->s_magic == TMPFS_MAGIC || sb->s_magic == RAMFS_MAGIC)
		return true;
	return sb->s_type->fs_flags & FS_REQUIRES_DEV && sb->s_magic != FUSE_SUPER_MAGIC;
}

/* Another thread may hold the lock and wait for what this task serves: only for a limited time. */
static bool lock_memory(struct mm_struct *mm)
{
	unsigned int tries = LOCK_TRIES;

	while (!mmap_read_trylock(mm))
		if (!tries-- || schedule_timeout_killable(1))
			return false;
	return true;
}

static bool bring_page(struct mm_struct *mm, u64 address)
{
	struct vm_area_struct *vma = find_vma(mm, address);

	return vma && vma->vm_start <= address && brings_pages_alone(vma) &&
	       !fixup_user_fault(mm, address, 0, NULL);
}

/* The pages of `n` bytes. False: the first is not to be had. A string may end before the others. */
static bool bring_back(u64 address, size_t n)
{
	struct mm_struct *mm = current->mm;
	u64 page = untagged_addr(address) & PAGE_MASK;
	u64 end = untagged_addr(address) + n;
	bool first;

	if (fatal_signal_pending(current) || !lock_memory(mm))
		return false;
	first = bring_page(mm, page);
	for (page += PAGE_SIZE; first && page < end; page += PAGE_SIZE)
		if (!bring_page(mm, page))
			break;
	mmap_read_unlock(mm);
	return first;
}

long etrace_user_string_later(char *to, u64 address)
{
	unsigned int tries = TRIES;
	long len = etrace_user_string(to, address);

	while (len == -EFAULT && tries-- && bring_back(address, PATH_MAX))
		len = etrace_user_string(to, address);
	return len;
}

int etrace_user_bytes_later(void *to, u64 address, size_t n)
{
	unsigned int tries = TRIES;
	int err = etrace_user_bytes(to, address, n);

	while (err && tries-- && bring_back(address, n))
		err = etrace_user_bytes(to, address, n);
	return err;
}
