// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Scripts: PP is the script, PI what its #! line names, arguments as the interpreter sees them. */
#include "expect.h"

static void make_script(struct task *task, const char *name, const char *first_line)
{
	int flags = O_CREAT | O_WRONLY | O_CLOEXEC;
	long fd = MUST(open(name, flags, 0755));

	expect_open(task, here(name), here(name), flags, 0755, fd);
	MUST(write((int)fd, first_line, strlen(first_line)));
	MUST(close((int)fd));
	expect(task, "Close|fd=%ld", fd);
}

/* `argv` is what the interpreter sees; `script` what is executed with arguments `args`. */
static void child_execs(struct task *task, const char *script, char **args, const char *interpreter,
			const char *program, char **argv)
{
	struct task child = expect_child(task);
	long pid = MUST(fork_call());

	if (pid) {
		expect_forked(task, &child, pid);
		wait_for(pid);
		return;
	}
	for (int i = 0; argv[i]; i++)
		if (!strcmp(argv[i], "NAME"))
			argv[i] = child.name;
	for (int i = 0; args[i]; i++)
		if (!strcmp(args[i], "NAME"))
			args[i] = child.name;
	expect_exec(&child, interpreter, program, argv);
	MUST(syscall(SYS_execve, script, args, environ));
}

static void run_script(struct task *task, const char *script, const char *program,
		       const char *interpreter, char *hash_bang, char *hash_bang_arg)
{
	char *args[] = { "dropped", "--as", "NAME", "last", NULL };
	char *argv[8] = { hash_bang };
	int n = 1;

	if (hash_bang_arg)
		argv[n++] = hash_bang_arg;
	argv[n++] = text("%s", script);
	for (int i = 1; args[i]; i++)
		argv[n++] = args[i];
	child_execs(task, script, args, interpreter, program, argv);
}

/* A script whose interpreter is a script: the program that runs is the last one named. */
static void nested(struct task *task)
{
	char *args[] = { "dropped", "--as", "NAME", NULL };
	char *argv[] = { here("bin/sh"), here("plain"), "nested", "--as", "NAME", NULL };

	make_script(task, "nested", text("#!%s\n", here("plain")));
	child_execs(task, "nested", args, here("bin/sh"), here("nested"), argv);
}

/* By a descriptor the interpreter gets a name that leads to it; PP is the script all the same. */
static void by_descriptor(struct task *task)
{
	struct task child = expect_child(task);
	char *args[] = { "dropped", "--as", child.name, NULL };
	char *argv[] = { here("bin/sh"), NULL, "--as", child.name, NULL };
	long pid, fd = MUST(open("plain", O_RDONLY));

	expect_open(task, here("plain"), here("plain"), O_RDONLY, 0, fd);
	argv[1] = text("/dev/fd/%ld", fd);
	pid = MUST(fork_call());
	if (!pid) {
		expect_exec(&child, here("bin/sh"), here("plain"), argv);
		MUST(syscall(SYS_execveat, (int)fd, "", args, environ, AT_EMPTY_PATH));
	}
	expect_forked(task, &child, pid);
	wait_for(pid);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	if (argc > 1)
		leave(&task, 0);
	make_dir("bin");
	MUST(symlink(self(), "bin/sh"));
	expect_symlink(&task, self(), self(), here("bin/sh"));
	MUST(symlink("bin", "binlink"));
	expect_symlink(&task, "bin", here("bin"), here("binlink"));

	make_script(&task, "plain", text("#!%s\n", here("bin/sh")));
	run_script(&task, "./plain", here("plain"), here("bin/sh"), here("bin/sh"), NULL);
	make_script(&task, "spaced", text("#! \t%s \t-x  -y \n", here("binlink/sh")));
	run_script(&task, here("spaced"), here("spaced"), here("bin/sh"), here("binlink/sh"),
		   "-x  -y");
	make_script(&task, "relative", "#!binlink/sh\n");
	run_script(&task, "relative", here("relative"), here("bin/sh"), "binlink/sh", NULL);
	MUST(symlink("plain", "tool"));
	expect_symlink(&task, "plain", here("plain"), here("tool"));
	run_script(&task, "tool", here("tool"), here("bin/sh"), here("bin/sh"), NULL);
	nested(&task);
	by_descriptor(&task);

	make_script(&task, "broken", "#!/absent/interpreter\n");
	MUST_FAIL(syscall(SYS_execve, "broken", argv, environ), ENOENT);
	leave(&task, 0);
}
