// SPDX-License-Identifier: Apache-2.0
/*
 * execve(2) has one error number for a missing file and for a missing interpreter of it, and one for
 * all formats that it does not know. The files are read afterwards to find the one that is to blame.
 */
#include "capture/unrunnable.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "capture/program.h"
#include "capture/program_file.h"
#include "capture/rlimits.h"

#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND 127
#define TEXT_BYTES 400
#define MAX_DEPTH 6 /* interpreters that are scripts: the kernel follows four */
#define DEFAULT_PATH "/bin:/usr/bin" /* of execvp() */
#define SPACES " \t\n"
#define OPERATORS "|&;<>()$`\"'*?{}#~!\\"
#define RUN "etrace run -- "

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define OTHER_MACHINE EM_386 /* that the kernel runs, too */
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#define OTHER_MACHINE EM_ARM
#else
#error "this architecture is not known"
#endif

static char reason[TEXT_BYTES], hint[TEXT_BYTES];

static void __attribute__((format(printf, 2, 3))) set(char text[TEXT_BYTES], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, TEXT_BYTES, format, args);
	va_end(args);
}

/* ---- command lines ---- */

/* Append a word as a shell reads it; what has no room is cut. */
static void put_word(char text[TEXT_BYTES], const char *word)
{
	bool is_plain = *word && !strpbrk(word, SPACES OPERATORS "[]\r");
	size_t len = strlen(text);

	if (is_plain) {
		snprintf(text + len, TEXT_BYTES - len, "%s", word);
		return;
	}
	len += (size_t)snprintf(text + len, TEXT_BYTES - len, "'");
	for (; *word && len < TEXT_BYTES - 1; word++)
		len += (size_t)snprintf(text + len, TEXT_BYTES - len, *word == '\'' ? "'\\''" : "%c", *word);
	if (len < TEXT_BYTES)
		snprintf(text + len, TEXT_BYTES - len, "'");
}

static void put_words(char text[TEXT_BYTES], char **words)
{
	for (; *words; words++) {
		put_word(text, *words);
		if (words[1])
			strncat(text, " ", TEXT_BYTES - strlen(text) - 1);
	}
}

/* The cure for what only a shell can run: `script` may be cut, and then is not shown. */
static void hint_shell(const char *shell, const char *script)
{
	set(hint, RUN "%s -c ", shell);
	put_word(hint, script);
	if (strlen(hint) >= TEXT_BYTES - 1)
		set(hint, RUN "%s -c '...'", shell);
}

/* ---- names ---- */

enum fault { FAULT_NONE, FAULT_MISSING, FAULT_DIRECTORY, FAULT_DEVICE, FAULT_NOT_EXECUTABLE };

static enum fault find_fault(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? FAULT_MISSING : FAULT_NONE;
	if (S_ISDIR(st.st_mode))
		return FAULT_DIRECTORY;
	if (!S_ISREG(st.st_mode))
		return FAULT_DEVICE;
	return access(path, X_OK) < 0 ? FAULT_NOT_EXECUTABLE : FAULT_NONE;
}

/* What a shell does itself, and no program of PATH can do: bash(1), dash(1). */
static const char *const shell_words[] = {
	"!", ".", ":", "[[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
	"compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown", "do", "done",
	"elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi", "for", "function",
	"getopts", "hash", "help", "history", "if", "jobs", "let", "local", "logout", "mapfile", "popd",
	"pushd", "read", "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source",
	"suspend", "then", "time", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset",
	"until", "wait", "while", "{", "}",
};

/* Those that dash does not have. */
static const char *const bash_words[] = {
	"[[", "bind", "builtin", "caller", "compgen", "complete", "compopt", "coproc", "declare", "dirs",
	"disown", "enable", "function", "help", "history", "let", "logout", "mapfile", "popd", "pushd",
	"readarray", "select", "shopt", "source", "suspend", "time", "typeset",
};

/* Those that only change what the shell starts afterwards. */
static const char *const settings[] = {
	".", "alias", "cd", "declare", "export", "popd", "pushd", "set", "shopt", "source", "trap", "typeset",
	"ulimit", "umask", "unset",
};

/* Customary aliases, which only an interactive shell has. */
static const char *const aliases[] = { "l", "la", "ll", "please" };

#define IS_ONE_OF(word, words) is_one_of(word, words, sizeof(words) / sizeof(words[0]))

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
	size_t i;

	for (i = 0; i < n && strcmp(words[i], word); i++)
		;
	return i < n;
}

/* `NAME=value`, an assignment of a shell. */
static bool is_assignment(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	return n && word[n] == '=' && !(*word >= '0' && *word <= '9');
}

/*
 * The file that a shell would execute: the first that may be executed, else the first that is there.
 * Returns false, with the name itself, when there is none.
 */
static bool locate(const char *name, char path[PATH_MAX])
{
	const char *at = getenv("PATH"), *end;
	bool is_found = false;
	char tried[PATH_MAX];
	struct stat st;

	snprintf(path, PATH_MAX, "%s", name);
	if (strchr(name, '/') || !*name)
		return lstat(path, &st) == 0;
	for (at = at ? at : DEFAULT_PATH;; at = end + 1) {
		end = strchrnul(at, ':');
		if (snprintf(tried, PATH_MAX, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "", name) < PATH_MAX &&
		    stat(tried, &st) == 0 && !S_ISDIR(st.st_mode)) {
			bool may_run = access(tried, X_OK) == 0;

			if (may_run || !is_found)
				strcpy(path, tried);
			is_found = true;
			if (may_run)
				return true;
		}
		if (!*end)
			return is_found;
	}
}

/* The first of the words that `text` has, separated by spaces. */
static void first_word(const char *text, char word[PATH_MAX])
{
	text += strspn(text, SPACES);
	snprintf(word, PATH_MAX, "%.*s", (int)strcspn(text, SPACES), text);
}

/* One word that is a whole command line; false when it may be the name of a file. */
static bool explain_line(const char *line)
{
	char word[PATH_MAX], path[PATH_MAX];

	first_word(line, word);
	if (strchr(word, '/') && !locate(word, path))
		return false;
	set(reason, "it is one word; no program has this name");
	if (strpbrk(line, OPERATORS) || IS_ONE_OF(word, shell_words))
		hint_shell(IS_ONE_OF(word, bash_words) ? "bash" : "sh", line);
	else
		set(hint, RUN "%s%s", is_assignment(word) ? "env " : "", line + strspn(line, SPACES));
	return true;
}

static void explain_shell_word(char **command)
{
	char script[TEXT_BYTES] = "";

	set(reason, "it is a command of the shell, not a program");
	if (!strcmp(command[0], "eval") && command[1] && !command[2])
		set(script, "%s", command[1]);
	else
		put_words(script, command);
	if (IS_ONE_OF(command[0], settings))
		strncat(script, " && make", sizeof(script) - strlen(script) - 1);
	hint_shell(IS_ONE_OF(command[0], bash_words) ? "bash" : "sh", script);
}

static void explain_not_found(char **command)
{
	const char *name = command[0];
	bool is_path = strchr(name, '/');

	set(reason, "%s", is_path ? strerror(ENOENT) : "no such command in PATH");
	if (!*name) {
		set(reason, "the first word of the command is empty");
	} else if (is_assignment(name) && !strpbrk(name, SPACES)) {
		set(reason, "it sets a variable, and only a shell does that");
		set(hint, RUN "env ");
		put_words(hint, command);
	} else if (strpbrk(name, SPACES) && explain_line(name)) {
		return;
	} else if (!is_path && IS_ONE_OF(name, shell_words)) {
		explain_shell_word(command);
	} else if (!is_path && IS_ONE_OF(name, aliases)) {
		set(reason, "no such command in PATH; only your shell knows its aliases");
		hint_shell("bash -i", name);
	} else if (strpbrk(name, "|&;<>`$(") && (!is_path || strpbrk(name, "|&;<>"))) {
		set(reason, "it is a line for a shell; no program has this name");
		hint_shell("sh", name);
	} else if (!is_path && find_fault(name) == FAULT_NONE && access(name, F_OK) == 0) {
		set(hint, "there is one in this directory: " RUN "./%s", name);
	}
}

/* ---- files ---- */

/* The file that is to blame: the command's, that of its interpreter, or that interpreter's and so on. */
static struct {
	char path[PATH_MAX], needed_by[PATH_MAX];
	char head[FILE_HEAD_BYTES];
	size_t n;
	enum fault fault;
	bool is_loader, has_return;
	int depth;
} culprit;

static const Elf64_Ehdr *elf_header(void)
{
	bool is_elf = culprit.n >= sizeof(Elf64_Ehdr) && !memcmp(culprit.head, ELFMAG, SELFMAG);

	return is_elf ? (const Elf64_Ehdr *)culprit.head : NULL; /* both classes begin alike */
}

static bool is_of_this_machine(const Elf64_Ehdr *elf)
{
	return elf->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (elf->e_machine == OWN_MACHINE || elf->e_machine == OTHER_MACHINE);
}

/* What the culprit needs; false when it needs nothing. */
static bool find_next(char next[PATH_MAX])
{
	const Elf64_Ehdr *elf;
	const char *name;
	size_t len;

	name = program_file_interpreter(culprit.head, &len);
	if (name) {
		culprit.has_return = memchr(name, '\r', len);
		if (culprit.has_return)
			len = strcspn(name, "\r");
		snprintf(next, PATH_MAX, "%.*s", (int)len, name);
		return true;
	}
	elf = elf_header();
	if (!elf || !is_of_this_machine(elf) || !program_file_loader(culprit.head, culprit.n, &name) || !name)
		return false;
	culprit.is_loader = true;
	snprintf(next, PATH_MAX, "%s", name);
	return true;
}

static void find_culprit(const char *path)
{
	char next[PATH_MAX];
	struct stat st;

	memset(&culprit, 0, sizeof(culprit));
	snprintf(culprit.path, PATH_MAX, "%s", path);
	for (;; culprit.depth++) {
		culprit.fault = culprit.has_return ? FAULT_MISSING : find_fault(culprit.path);
		if (culprit.fault || culprit.is_loader || culprit.depth == MAX_DEPTH)
			return;
		culprit.n = program_file_head(culprit.path, culprit.head, &st);
		if (!find_next(next))
			return;
		strcpy(culprit.needed_by, culprit.path);
		strcpy(culprit.path, next);
	}
}

/* `it`, or how the culprit is related to the command. */
static const char *subject(void)
{
	static char text[TEXT_BYTES];

	if (culprit.depth == 0)
		return "it";
	if (culprit.depth == 1)
		set(text, "its %s '%.120s'", culprit.is_loader ? "dynamic loader" : "interpreter", culprit.path);
	else
		set(text, "the %s '%.120s' of its interpreter '%.120s'",
		    culprit.is_loader ? "dynamic loader" : "interpreter", culprit.path, culprit.needed_by);
	return text;
}

/* Who brings a loader. */
static const struct {
	const char *part, *cure;
} loaders[] = {
	{ "ld-musl", "it was linked with musl: install it (apt-get install musl), or link it statically" },
	{ "ld-linux.so.2", "it is a 32-bit program: install libc6-i386 (Debian), glibc.i686 (Fedora)" },
	{ "ld-linux", "it was linked with glibc: install it (Alpine: apk add gcompat)" },
	{ "/nix/store", "it is a program of Nix: fetch what it needs with nix-store --realise" },
	{ "/system/bin/linker", "it is a program for Android" },
};

static void explain_missing(void)
{
	char link[PATH_MAX];
	ssize_t n = readlink(culprit.path, link, sizeof(link) - 1);
	size_t i;

	if (culprit.has_return) {
		set(reason, "%s ends with a carriage return (\\r): the file has line ends of Windows (CR LF)",
		    subject());
		set(hint, "sed -i 's/\\r$//' ");
		put_word(hint, culprit.needed_by);
		strncat(hint, " (or dos2unix)", TEXT_BYTES - strlen(hint) - 1);
	} else if (n > 0) {
		set(reason, "%s is a link to '%.*s', which is missing", subject(), (int)(n > 120 ? 120 : n), link);
	} else {
		set(reason, "%s is missing", subject());
		set(hint, culprit.is_loader ? "install the C library that it was linked with, or link it statically" :
					      "install it, or correct the first line of '%s'", culprit.needed_by);
	}
	for (i = 0; culprit.is_loader && n <= 0 && i < sizeof(loaders) / sizeof(loaders[0]); i++) {
		if (strstr(culprit.path, loaders[i].part)) {
			set(hint, "%s", loaders[i].cure);
			return;
		}
	}
}

static void explain_denied(void)
{
	struct statvfs system;
	struct stat st;
	bool has_bit = stat(culprit.path, &st) == 0 && st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH);

	if (culprit.fault == FAULT_DIRECTORY) {
		set(reason, "%s is a directory", subject());
		set(hint, culprit.depth ? "correct the first line of '%s'" : RUN "make -C %s",
		    culprit.depth ? culprit.needed_by : culprit.path);
	} else if (culprit.fault == FAULT_DEVICE) {
		set(reason, "%s is not a regular file", subject());
	} else if (has_bit && statvfs(culprit.path, &system) == 0 && system.f_flag & ST_NOEXEC) {
		set(reason, "the file system of '%.200s' is mounted noexec", culprit.path);
		set(hint, "move it to another one; a script runs as: " RUN "sh FILE");
	} else if (!has_bit && culprit.fault == FAULT_NOT_EXECUTABLE) {
		set(reason, "%s is not executable", subject());
		set(hint, "chmod +x ");
		put_word(hint, culprit.path);
	} else {
		set(reason, "%s", strerror(EACCES));
	}
}

static const struct {
	unsigned int machine;
	const char *name;
} machines[] = {
	{ EM_X86_64, "x86-64" }, { EM_386, "i386" }, { EM_AARCH64, "arm64" }, { EM_ARM, "arm" },
	{ EM_RISCV, "RISC-V" }, { EM_PPC64, "ppc64" }, { EM_PPC, "PowerPC" }, { EM_S390, "s390x" },
	{ EM_MIPS, "MIPS" }, { EM_SPARCV9, "sparc64" }, { 258, "LoongArch" },
};

static const char *machine_name(unsigned int machine)
{
	size_t i;

	for (i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == machine)
			return machines[i].name;
	return "another architecture";
}

/* Programs of other systems and files that are not programs, by their first bytes. */
static const struct {
	const char *magic, *what, *cure;
} formats[] = {
	{ "MZ", "a program for Windows", "wine runs it: " RUN "wine FILE" },
	{ "\xcf\xfa\xed\xfe", "a program for macOS", "" },
	{ "\xce\xfa\xed\xfe", "a program for macOS", "" },
	{ "\xca\xfe\xba\xbe", "a class of Java, or a program for macOS", RUN "java CLASS" },
	{ "!<arch>\n", "a static library", "" },
	{ "PK\x03\x04", "a ZIP or JAR file", RUN "java -jar FILE" },
};

static void explain_elf(const Elf64_Ehdr *elf)
{
	unsigned int machine = elf->e_machine;

	if (elf->e_ident[EI_DATA] == ELFDATA2MSB)
		machine = (machine & 0xff) << 8 | machine >> 8;
	if (!is_of_this_machine(elf)) {
		set(reason, "%s is a program for %s, and this machine is %s", subject(), machine_name(machine),
		    machine_name(OWN_MACHINE));
		set(hint, "build it for this machine, or install qemu-user-static and binfmt-support");
	} else if (elf->e_type == ET_REL) {
		set(reason, "%s is an object file that was not linked", subject());
	} else if (elf->e_machine == OTHER_MACHINE) {
		set(reason, "%s is a program for %s, which this kernel does not run", subject(), machine_name(machine));
	} else {
		set(reason, "%s is damaged, or not a program (%s)", subject(), strerror(ENOEXEC));
	}
}

static void explain_format(void)
{
	const Elf64_Ehdr *elf = elf_header();
	size_t i;

	if (elf) {
		explain_elf(elf);
		return;
	}
	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		size_t n = strlen(formats[i].magic);

		if (culprit.n >= n && !memcmp(culprit.head, formats[i].magic, n)) {
			set(reason, "%s is %s", subject(), formats[i].what);
			set(hint, "%s", formats[i].cure);
			return;
		}
	}
	set(reason, culprit.n ? "%s is not a program, and has no usable #! line" : "%s cannot be executed (%s)",
	    subject(), strerror(ENOEXEC));
	set(hint, "a script runs as: " RUN "sh ");
	put_word(hint, culprit.path);
}

/* Whether a shell would not read the file as a script: its first line has a zero byte. */
static bool is_binary(void)
{
	size_t line = culprit.n ? strcspn(culprit.head, "\n") : 0;

	return elf_header() || (line < culprit.n && culprit.head[line] == '\0');
}

/* ---- the command ---- */

void command_execute(char **command)
{
	char path[PATH_MAX];

	if (locate(command[0], path)) {
		execv(path, command);
		if (errno == ENOEXEC) {
			find_culprit(path);
			errno = ENOEXEC;
			if (is_binary())
				return;
		}
	}
	execvp(command[0], command);
}

int command_failure_status(int error)
{
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

/* Whether the kernel may know formats besides its own: binfmt_misc has more than `register` and `status`. */
static bool has_other_formats(void)
{
	struct dirent *entry;
	DIR *entries = opendir("/proc/sys/fs/binfmt_misc");
	size_t n = 0;

	if (!entries)
		return false;
	while ((entry = readdir(entries)))
		n += *entry->d_name != '.';
	closedir(entries);
	return n > 2;
}

/* The error that execve() will have, as far as names, permissions and first bytes show. */
static int expected_error(bool is_found)
{
	const Elf64_Ehdr *elf = elf_header();
	struct stat st;
	size_t len;

	if (!is_found) /* it may be in the working directory, and not in PATH */
		return stat(culprit.path, &st) < 0 && errno == ENOTDIR ? ENOTDIR : ENOENT;
	if (culprit.fault)
		return culprit.fault == FAULT_MISSING ? ENOENT : EACCES;
	if (elf ? is_of_this_machine(elf) && elf->e_type != ET_REL :
		  !culprit.n || program_file_interpreter(culprit.head, &len))
		return 0;
	return has_other_formats() ? 0 : ENOEXEC;
}

int command_explain(char **command, int error)
{
	char path[PATH_MAX];
	bool is_found = locate(command[0], path);

	*hint = '\0';
	find_culprit(path);
	if (!error)
		error = expected_error(is_found);
	if (!error)
		return 0;
	if (!is_found && !strchr(command[0], '/')) /* EACCES: a directory of PATH that may not be searched */
		error = ENOENT;
	if (error == ENOENT && !is_found)
		explain_not_found(command);
	else if (error == ENOENT && culprit.fault == FAULT_MISSING)
		explain_missing();
	else if (error == EACCES && culprit.fault)
		explain_denied();
	else if (error == ENOEXEC)
		explain_format();
	else
		set(reason, "%s%s", strerror(error), limits_blame(error));
	say("cannot run '%.300s': %s%s%s", command[0], reason, *hint ? "\n  hint: " : "", hint);
	return command_failure_status(error);
}
