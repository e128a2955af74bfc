// SPDX-License-Identifier: Apache-2.0
/* open*, creat, and the functions of libc that open a file by a name: fopen, opendir, mkstemp, .. */

#include "paths.h"
#include "record.h"

#define F_GETFL 3
#define STDIO_MODE 0666u
#define DIRECTORY_FLAGS (O_NONBLOCK | O_DIRECTORY | O_CLOEXEC)

/* errno is left alone. */
int record_open(int fd, int dirfd, const char *name, int flags, unsigned int mode)
{
	struct record record;
	struct path path;

	if (fd < 0 || !ring_is_on())
		return fd;
	path_of_fd(&path, fd);
	record_begin(&record, RING_OPEN);
	record_string(&record, path.text, path.n);
	record_string(&record, name, length(name));
	path.n = 0;
	if (dirfd != AT_FDCWD && name[0] != '/') {
		path_of_fd(&path, dirfd);
		record.values.args[3] = !path.n;
	}
	record_string(&record, path.text, path.n);
	record.values.args[0] = flags;
	record.values.args[1] = (int)mode;
	record.values.args[2] = fd;
	record_end(&record);
	return fd;
}

int openat(int dirfd, const char *name, int flags, ...);

static bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static int open_by_call(int dirfd, const char *name, int flags, unsigned int mode)
{
	__typeof__(&openat) next = has_threads() ? NEXT(openat) : NULL;

	if (next)
		return next(dirfd, name, flags, mode);
	return (int)with_errno(CALL4(__NR_openat, dirfd, name, flags, mode));
}

static int open_name(int dirfd, const char *name, int flags, unsigned int mode)
{
	return record_open(open_by_call(dirfd, name, flags, mode), dirfd, name, flags, mode);
}

#define MODE(flags) \
	({ \
		unsigned int mode_ = 0; \
		if (has_mode(flags)) { \
			va_list list_; \
			va_start(list_, flags); \
			mode_ = va_arg(list_, unsigned int); \
			va_end(list_); \
		} \
		mode_; \
	})

PUBLIC int open(const char *name, int flags, ...)
{
	return open_name(AT_FDCWD, name, flags, MODE(flags));
}

PUBLIC int open64(const char *name, int flags, ...)
{
	return open_name(AT_FDCWD, name, flags | LARGEFILE, MODE(flags));
}

PUBLIC int openat(int dirfd, const char *name, int flags, ...)
{
	return open_name(dirfd, name, flags, MODE(flags));
}

PUBLIC int openat64(int dirfd, const char *name, int flags, ...)
{
	return open_name(dirfd, name, flags | LARGEFILE, MODE(flags));
}

/* What _FORTIFY_SOURCE makes of calls without a mode. */
PUBLIC int __open_2(const char *name, int flags)
{
	return open_name(AT_FDCWD, name, flags, 0);
}

PUBLIC int __open64_2(const char *name, int flags)
{
	return open_name(AT_FDCWD, name, flags | LARGEFILE, 0);
}

PUBLIC int __openat_2(int dirfd, const char *name, int flags)
{
	return open_name(dirfd, name, flags, 0);
}

PUBLIC int __openat64_2(int dirfd, const char *name, int flags)
{
	return open_name(dirfd, name, flags | LARGEFILE, 0);
}

PUBLIC int creat(const char *name, unsigned int mode)
{
	return open_name(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

PUBLIC int creat64(const char *name, unsigned int mode)
{
	return open_name(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC | LARGEFILE, mode);
}

/* ---- streams ---- */

int fileno_unlocked(void *stream) WEAK;
int fileno(void *stream) WEAK;
void *fopen(const char *name, const char *mode);
void *fopen64(const char *name, const char *mode);
void *freopen(const char *name, const char *mode, void *stream);
void *freopen64(const char *name, const char *mode, void *stream);
int fclose(void *stream);
int pclose(void *stream);
void *tmpfile(void);
void *tmpfile64(void);

static int descriptor_of(void *stream)
{
	int *error = __errno_location();
	int kept = *error;
	int fd = -1;

	if (stream && fileno_unlocked)
		fd = fileno_unlocked(stream);
	else if (stream && fileno)
		fd = fileno(stream);
	*error = kept;
	return fd;
}

/* As libc reads the mode of fopen(). */
static int flags_of_mode(const char *mode)
{
	bool both = find(mode, "+");
	int flags = both ? O_RDWR : O_RDONLY;

	if (mode[0] == 'w')
		flags = (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
	else if (mode[0] == 'a')
		flags = (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
	for (mode += *mode != '\0'; *mode && *mode != ','; mode++) {
		if (*mode == 'e')
			flags |= O_CLOEXEC;
		else if (*mode == 'x')
			flags |= O_EXCL;
	}
	return flags;
}

static void *record_stream(void *stream, const char *name, const char *mode, int more)
{
	int flags;

	if (!stream || !ring_is_on())
		return stream;
	flags = flags_of_mode(mode) | more;
	record_open(descriptor_of(stream), AT_FDCWD, name, flags, has_mode(flags) ? STDIO_MODE : 0);
	return stream;
}

static void record_close(int fd)
{
	if (fd >= 0 && ring_is_on())
		record_put(RING_CLOSE, fd, 0, 0);
}

PUBLIC void *fopen(const char *name, const char *mode)
{
	__typeof__(&fopen) next = NEXT(fopen);

	return next ? record_stream(next(name, mode), name, mode, 0) : NULL;
}

PUBLIC void *fopen64(const char *name, const char *mode)
{
	__typeof__(&fopen64) next = NEXT(fopen64);

	return next ? record_stream(next(name, mode), name, mode, LARGEFILE) : NULL;
}

static void *reopened(__typeof__(&freopen) next, const char *name, const char *mode, void *stream,
		      int more)
{
	int before = descriptor_of(stream);
	void *result = next ? next(name, mode, stream) : NULL;

	if (before >= 0 && (!result || descriptor_of(result) != before))
		record_close(before);
	return name ? record_stream(result, name, mode, more) : result;
}

PUBLIC void *freopen(const char *name, const char *mode, void *stream)
{
	return reopened(NEXT(freopen), name, mode, stream, 0);
}

PUBLIC void *freopen64(const char *name, const char *mode, void *stream)
{
	return reopened(NEXT(freopen64), name, mode, stream, LARGEFILE);
}

PUBLIC int fclose(void *stream)
{
	__typeof__(&fclose) next = NEXT(fclose);
	int fd = descriptor_of(stream);
	int result = next ? next(stream) : -1;

	record_close(fd);
	return result;
}

PUBLIC int pclose(void *stream)
{
	__typeof__(&pclose) next = NEXT(pclose);
	int fd = descriptor_of(stream);
	int result = next ? next(stream) : -1;

	record_close(fd);
	return result;
}

static void *record_temporary(void *stream)
{
	int fd = descriptor_of(stream);
	struct path path;

	if (fd < 0 || !ring_is_on())
		return stream;
	path_of_fd(&path, fd);
	record_open(fd, AT_FDCWD, path.text, O_RDWR | O_CREAT | O_EXCL, 0600);
	return stream;
}

PUBLIC void *tmpfile(void)
{
	__typeof__(&tmpfile) next = NEXT(tmpfile);

	return next ? record_temporary(next()) : NULL;
}

PUBLIC void *tmpfile64(void)
{
	__typeof__(&tmpfile64) next = NEXT(tmpfile64);

	return next ? record_temporary(next()) : NULL;
}

/* ---- directories ---- */

void *opendir(const char *name);
int closedir(void *directory);
int dirfd(void *directory) WEAK;

PUBLIC void *opendir(const char *name)
{
	__typeof__(&opendir) next = NEXT(opendir);
	void *directory = next ? next(name) : NULL;

	if (directory && dirfd)
		record_open(dirfd(directory), AT_FDCWD, name, DIRECTORY_FLAGS, 0);
	return directory;
}

PUBLIC int closedir(void *directory)
{
	__typeof__(&closedir) next = NEXT(closedir);
	int fd = directory && dirfd ? dirfd(directory) : -1;
	int result = next ? next(directory) : -1;

	record_close(fd);
	return result;
}

/* ---- names that libc makes ---- */

#define TEMPORARY(function, declared, passed, flags) \
	int function declared; \
	PUBLIC int function declared \
	{ \
		__typeof__(&function) next = NEXT(function); \
		int fd = next ? next passed : (int)with_errno(-ENOSYS); \
		return record_open(fd, AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | (flags), 0600); \
	}

TEMPORARY(mkstemp, (char *name), (name), 0)
TEMPORARY(mkstemp64, (char *name), (name), LARGEFILE)
TEMPORARY(mkostemp, (char *name, int flags), (name, flags), flags)
TEMPORARY(mkostemp64, (char *name, int flags), (name, flags), flags | LARGEFILE)
TEMPORARY(mkstemps, (char *name, int suffix), (name, suffix), 0)
TEMPORARY(mkstemps64, (char *name, int suffix), (name, suffix), LARGEFILE)
TEMPORARY(mkostemps, (char *name, int suffix, int flags), (name, suffix, flags), flags)
TEMPORARY(mkostemps64, (char *name, int suffix, int flags), (name, suffix, flags), flags | LARGEFILE)
