/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendered from etrace/spec/syscalls.toml by `make generate`: do not edit. The cases of a switch over the
 * number of a call, in which `a` has the arguments and `result` takes what the call returned.
 */
	case __NR_openat:
		*result = openat(INT(0), TEXT(1), INT(2), INT(3));
		return true;
	case __NR_close:
		*result = close(INT(0));
		return true;
#ifdef __NR_open
	case __NR_open:
		*result = open(TEXT(0), INT(1), INT(2));
		return true;
#endif
#ifdef __NR_dup2
	case __NR_dup2:
		*result = dup2(INT(0), INT(1));
		return true;
#endif
	case __NR_pipe2:
		*result = pipe2((int *)a[0], INT(1));
		return true;
#ifdef __NR_pipe
	case __NR_pipe:
		*result = pipe((int *)a[0]);
		return true;
#endif
	case __NR_dup:
		*result = dup(INT(0));
		return true;
	case __NR_dup3:
		*result = dup3(INT(0), INT(1), INT(2));
		return true;
	case __NR_chdir:
		*result = chdir(TEXT(0));
		return true;
	case __NR_fchdir:
		*result = fchdir(INT(0));
		return true;
#ifdef __NR_rename
	case __NR_rename:
		*result = rename(TEXT(0), TEXT(1));
		return true;
#endif
#ifdef __NR_renameat
	case __NR_renameat:
		*result = renameat(INT(0), TEXT(1), INT(2), TEXT(3));
		return true;
#endif
	case __NR_renameat2:
		*result = renameat2(INT(0), TEXT(1), INT(2), TEXT(3), (unsigned int)a[4]);
		return true;
#ifdef __NR_link
	case __NR_link:
		*result = link(TEXT(0), TEXT(1));
		return true;
#endif
	case __NR_linkat:
		*result = linkat(INT(0), TEXT(1), INT(2), TEXT(3), INT(4));
		return true;
#ifdef __NR_symlink
	case __NR_symlink:
		*result = symlink(TEXT(0), TEXT(1));
		return true;
#endif
	case __NR_symlinkat:
		*result = symlinkat(TEXT(0), INT(1), TEXT(2));
		return true;
	case __NR_openat2:
		*result = open_how(a, CALL4(n, a[0], a[1], a[2], a[3]));
		return true;
#ifdef __NR_creat
	case __NR_creat:
		*result = creat(TEXT(0), (unsigned int)a[1]);
		return true;
#endif
	case __NR_close_range:
		*result = close_range((unsigned int)a[0], (unsigned int)a[1], INT(2));
		return true;
	case __NR_execve:
		*result = execve(TEXT(0), (char *const *)a[1], (char *const *)a[2]);
		return true;
	case __NR_execveat:
		*result = execveat(INT(0), TEXT(1), (char *const *)a[2], (char *const *)a[3], INT(4));
		return true;
	case __NR_chroot:
		*result = chroot(TEXT(0));
		return true;
	case __NR_open_by_handle_at:
		*result = handle_told(CALL3(n, a[0], a[1], a[2]), INT(2));
		return true;
