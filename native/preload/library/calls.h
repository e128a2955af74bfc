/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendered from etrace/spec/syscalls.toml by `make generate`: do not edit. The cases of a switch over the
 * number of a call, by the macro of direct.c; `a` has the arguments.
 */
	RECORDED(openat, openat(INT(0), TEXT(1), INT(2), INT(3)))
	RECORDED(close, close(INT(0)))
#ifdef __NR_open
	RECORDED(open, open(TEXT(0), INT(1), INT(2)))
#endif
#ifdef __NR_dup2
	RECORDED(dup2, dup2(INT(0), INT(1)))
#endif
	RECORDED(pipe2, pipe2((int *)a[0], INT(1)))
#ifdef __NR_pipe
	RECORDED(pipe, pipe((int *)a[0]))
#endif
	RECORDED(dup, dup(INT(0)))
	RECORDED(dup3, dup3(INT(0), INT(1), INT(2)))
	RECORDED(chdir, chdir(TEXT(0)))
	RECORDED(fchdir, fchdir(INT(0)))
#ifdef __NR_rename
	RECORDED(rename, rename(TEXT(0), TEXT(1)))
#endif
#ifdef __NR_renameat
	RECORDED(renameat, renameat(INT(0), TEXT(1), INT(2), TEXT(3)))
#endif
	RECORDED(renameat2, renameat2(INT(0), TEXT(1), INT(2), TEXT(3), (unsigned int)a[4]))
#ifdef __NR_link
	RECORDED(link, link(TEXT(0), TEXT(1)))
#endif
	RECORDED(linkat, linkat(INT(0), TEXT(1), INT(2), TEXT(3), INT(4)))
#ifdef __NR_symlink
	RECORDED(symlink, symlink(TEXT(0), TEXT(1)))
#endif
	RECORDED(symlinkat, symlinkat(TEXT(0), INT(1), TEXT(2)))
	RECORDED(openat2, open_how(a, CALL4(n, a[0], a[1], a[2], a[3])))
#ifdef __NR_creat
	RECORDED(creat, creat(TEXT(0), (unsigned int)a[1]))
#endif
	RECORDED(close_range, close_range((unsigned int)a[0], (unsigned int)a[1], INT(2)))
	RECORDED(execve, execve(TEXT(0), (char *const *)a[1], (char *const *)a[2]))
	RECORDED(execveat, execveat(INT(0), TEXT(1), (char *const *)a[2], (char *const *)a[3], INT(4)))
	RECORDED(chroot, chroot(TEXT(0)))
	RECORDED(open_by_handle_at, record_handle(CALL3(n, a[0], a[1], a[2]), INT(2)))
