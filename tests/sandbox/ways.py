# SPDX-License-Identifier: Apache-2.0
"""Ways to have `etrace check` or `cas pp` run or change something: ways.py [--few] BIN DIRECTORY

Each way is a folder with a make (or ninja, or compiler) of its own. One script builds them all and
is traced; then what it read becomes hostile; then etrace looks at the build. Whatever changes in
DIRECTORY is a hole: the names of such ways are printed. First, each make is asked in the same way
without the sandbox, in a copy: a way that changes nothing even there is printed as `idle`.
Needs Python, make and a compiler, no pytest: it runs in the guest, too, where `--few` leaves out
what takes long: two of three ways, what `cas pp` asks, the copy, and the compiler of build().
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

RECIPES = "all: a.o\na.o: a.c\n\tcp a.c a.o\n"
#: runs when a library is loaded; a function of make's `load`, and of ld.so's LD_AUDIT
LIBRARY = """\
#include <stdlib.h>
int plugin_is_GPL_compatible;
unsigned int la_version(unsigned int v) { return v; }
int evil_gmk_setup(void) { return 1; }
__attribute__((constructor)) static void go(void) { unsetenv("LD_PRELOAD"); system("sh ./pay"); }
"""
#: what takes the place of a shell or a make
PROGRAM = '#include <stdlib.h>\nint main(void) { return system("sh ./pay"); }\n'
#: of every way: changes a mode, times, content and names
PAY = "chmod 666 key; touch -d 2001-01-01 key; echo x >> key; mkdir -p made; cp key made; exit 0\n"
HARMLESS = "exit 0\n"
LOADER = next(
    (str(p) for p in sorted(Path("/lib64").glob("ld-linux*"))), "/lib/ld-linux-aarch64.so.1"
)

#: words of a make -> what becomes of its makefile, PLAIN by default
WORDS = [
    "' SHELL=/bin/sh'", "'SHELL!=echo /bin/sh'", "SHELL:=/bin/sh", "SHELL::=/bin/sh",
    "SHELL=/bin/sh", "'SHELL =/bin/sh'", "SHELL?=/bin/sh", "'override SHELL=/bin/sh'",
    ".SHELLFLAGS=-c",
    "'--eval=override SHELL=/bin/sh'", "'--eval=X:=$(shell sh ./pay)'",
    "--eval '$(shell sh ./pay)'",
    "'--eval=-load ./evil.so'", "'--eval=$(file >>key,x)'", "'--ev=$(shell sh ./pay)'",
    "-f more.mk", "-fmore.mk", "--file=more.mk", "--makefile more.mk", "--fil=more.mk",
    "-C sub", "-Csub", "--directory=sub", "-C sub -C ..", "-I inc", "--include-dir=inc", "-e",
    "-B", "-t", "-q",
    "-W a.c", "-o a.o", "-r", "-R", "-i", "-s", "-d", "--trace", "-j2", "-Oline", "-w", "-kn", "-p",
    "--no-print-directory", "--warn-undefined-variables", "-L", "-S", "all", "a.o",
    "X='$(shell sh ./pay)' all",
]  # fmt: skip
PLAIN = f"""\
X := $(shell sh ./pay)
-load ./evil.so
-include inc.mk
{RECIPES}\t+sh ./pay
$(file >>key,x)
"""
#: what a makefile becomes, of a make without words
MAKEFILES = {
    "shell": "X := $(shell sh ./pay)\n",
    "override": "override SHELL := /bin/sh\nX := $(shell sh ./pay)\n",
    "bash": "override SHELL := /bin/bash\n.SHELLFLAGS := -ec\nX := $(shell sh ./pay)\n",
    "loader": f"override SHELL := {LOADER}\n.SHELLFLAGS := ./evil\nX := $(shell x)\n",
    "script": "override SHELL := ./script\nX := $(shell x)\n",
    "program": "override SHELL := ./evil\n.SHELLFLAGS :=\nX := $(shell x)\n",
    "assign": "X != sh ./pay\n",
    "lazy": "X = $(shell sh ./pay)\nY := $(X)\n",
    "eval": "$(eval X := $(shell sh ./pay))\n",
    "call": "f = $(shell sh $1)\n$(call f,./pay)\n",
    "info": "$(info $(shell sh ./pay))\n",
    "warning": "$(warning $(shell sh ./pay))\n",
    "condition": "ifeq ($(shell sh ./pay),)\nendif\n",
    "wildcard": "X := $(wildcard $(shell sh ./pay)*)\n",
    "foreach": "$(foreach a,1 2,$(shell sh ./pay))\n",
    "file": "$(file >>key,x)$(file >made,x)\n",
    "read": "X := $(file <key)$(file >made,x)\n",
    "load": "-load ./evil.so\n",
    "load-named": "-load ./evil.so(evil_gmk_setup)\n",
    "load-eval": "$(eval -load ./evil.so)\n",
    "load-hard": "load ./evil.so\n",
    "preload": "X := $(shell LD_PRELOAD=./evil.so /bin/true)\n",
    "path": "X := $(shell PATH=.:$$PATH; tool)\n",
    "bash-env": "X := $(shell BASH_ENV=./pay bash -c true)\n",
    "include": "include inc.mk\n",
    "include-dash": "-include inc.mk\n",
    "sinclude": "sinclude inc.mk\n",
    "include-link": "include link.mk\n",
    "remade": "include new.mk\nnew.mk:\n\tsh ./pay; touch new.mk\n",
    "remade-plus": "include new.mk\nnew.mk: FORCE\n\t+@sh ./pay; touch new.mk\nFORCE:\n",
    "remade-make": "include new.mk\nnew.mk:\n\t$(MAKE) -f inc.mk; touch new.mk\n",
    "plus": "first:\n\t+sh ./pay\n",
    "make": "first:\n\t$(MAKE) -f inc.mk\n",
    "make-word": "first:\n\t@: $(MAKE); sh ./pay\n",
    "make-braces": "first:\n\t: ${MAKE} && sh ./pay\n",
    "oneshell": ".ONESHELL:\nfirst:\n\t+sh ./pay\n\t:\n",
    "prefix": ".RECIPEPREFIX := >\nfirst:\n>+sh ./pay\n.RECIPEPREFIX :=\n",
    "second": ".SECONDEXPANSION:\nfirst: $$(shell sh ./pay)\nfirst:\n\t:\n",
    "target-shell": "first: override SHELL := /bin/sh\nfirst:\n\t+sh ./pay\n",
    "target-value": "first: X := $(shell sh ./pay)\nfirst:\n\t: $(X)\n",
    "flags-run": "MAKEFLAGS := $(filter-out n,$(MAKEFLAGS))\nfirst:\n\t+sh ./pay\n",
    "suffix": ".SUFFIXES: .p .q\n.p.q:\n\t+sh ./pay\nfirst: x.q\n",
    "pattern": "%.q: %.p\n\t+sh ./pay\nfirst: x.q\n",
    "default": ".DEFAULT:\n\t+sh ./pay\nfirst: nothing\n",
    "double": "first::\n\t+sh ./pay\n",
    "define": "define D\n+sh ./pay\nendef\nfirst:\n\t$(D)\n",
    "guile": "$(guile (system \"sh ./pay\"))\n",
    "archive": "first: lib.a(x.q)\n(%): %\n\t+sh ./pay\n%.q:\n\t+sh ./pay\n",
}  # fmt: skip
#: variables of a make, in the trace
VARIABLES = [
    "MAKEFLAGS='--eval=override\\ SHELL=/bin/sh'", "GNUMAKEFLAGS='--eval=override\\ SHELL=/bin/sh'",
    "MAKEFLAGS='--eval=$(file\\ >>key,x)'", "MAKEFLAGS=e SHELL=/bin/sh", "MAKEFILES=more.mk",
    "MAKEFLAGS='-- SHELL=/bin/sh'", "LD_PRELOAD=./evil.so", "LD_AUDIT=./evil.so",
    "LD_LIBRARY_PATH=.",
    "GCONV_PATH=.", "BASH_ENV=./pay", "ENV=./pay", "SHELL=./evil", "MAKESHELL=./evil",
    "GLIBC_TUNABLES=x", "LOCPATH=.", "PATH=.:$PATH",
]  # fmt: skip
#: programs that take make's place
PROGRAMS = {
    "copy-of-perl": 'cp "$(command -v perl)" ./make; ./make -e 0',
    "link-to-perl": 'ln -s "$(command -v perl)" ./make; ./make -e 0',
    "link-to-make": 'ln -s "$(command -v make)" ./gmake; ./gmake',
    "script-make": "printf '#!/bin/sh\\nsh ./pay\\n' > make; chmod 755 make; ./make",
    "own-make": 'cp "$(command -v make)" ./make; ./make',
    "link-to-ninja": 'ln -s "$(command -v perl)" ./ninja; ./ninja -e 0',
}
NINJA = """\
include inc.ninja
subninja sub.ninja
msvc_deps_prefix = x
builddir = .
rule r
  command = sh ./pay; cp a.c $out
  deps = gcc
  depfile = $out.d
  generator = 1
  restat = 1
build a.o: r a.c
"""
NINJAS = {"": NINJA, "-C .": NINJA, "-f other.ninja": NINJA, "-t deps": NINJA, "-n": NINJA}
COMPILERS = [
    "gcc -c a.c", "gcc -B. -c a.c", "gcc -specs=./specs -c a.c", "gcc -fplugin=./evil.so -c a.c",
    "gcc -wrapper sh,./pay -c a.c", "gcc @words -c a.c", "gcc --sysroot=. -c a.c",
    "gcc -c a.c -o sub/a.o", "COMPILER_PATH=. gcc -c a.c", "GCC_EXEC_PREFIX=./ gcc -c a.c",
    "LD_PRELOAD=./evil.so gcc -c a.c", "DEPENDENCIES_OUTPUT=made gcc -c a.c",
    "gcc -no-integrated-cpp -B. -c a.c", "gcc -dumpdir ./ -save-temps -c a.c",
    "gcc -MD -MF made.d -c a.c", "gcc -isystem . -include a.h -c a.c", "./gcc -c a.c",
    "gcc -x c -c ./a.c",
]  # fmt: skip


def files_of(folder: Path) -> None:
    """Put down what every way has; nothing of it is hostile yet."""
    (folder / "sub").mkdir(parents=True)
    (folder / "inc").mkdir()
    for name, text in {
        "a.c": "int a;\n",
        "a.h": "",
        "key": "key\n",
        "pay": HARMLESS,
        "x.p": "",
        "words": "-DX\n",
        "more.mk": RECIPES,
        "inc.mk": "",
        "inc/inc.mk": "",
        "Makefile": RECIPES,
        "specs": "",
        "build.ninja": "rule r\n  command = cp a.c $out\nbuild a.o: r a.c\n",
        "sub.ninja": "",
        "script": "#!/bin/sh\nexit 0\n",
        "tool": "#!/bin/sh\nexit 0\n",
        "inc.ninja": "",
        "sub/Makefile": RECIPES,
        "sub/a.c": "",
        "sub/pay": HARMLESS,
        "sub/key": "key\n",
    }.items():
        (folder / name).write_text(text)
    for name in ("script", "tool"):
        (folder / name).chmod(0o755)
    (folder / "link.mk").symlink_to("inc.mk")
    shutil.copy(folder / "build.ninja", folder / "other.ninja")
    (folder / "key").chmod(0o600)


def all_ways() -> dict[str, tuple[str, str]]:
    """Return the command of each way, and what its makefile becomes."""
    ways = {f"word {word}": (f"make {word}", PLAIN) for word in WORDS}
    ways |= {f"makefile {name}": ("make", text + RECIPES) for name, text in MAKEFILES.items()}
    ways |= {f"variable {name}": (f"{name} make", PLAIN) for name in VARIABLES}
    ways |= {f"program {name}": (command, PLAIN) for name, command in PROGRAMS.items()}
    if shutil.which("ninja"):
        ways |= {f"ninja {words}": (f"ninja {words}", text) for words, text in NINJAS.items()}
    return ways | {f"compiler {command}": (command, "") for command in COMPILERS}


def spoil(folder: Path, makefile: str, built: Path) -> None:
    """Make everything that was read hostile."""
    (folder / "pay").write_text(PAY)
    (folder / "sub/pay").write_text(PAY)
    for name in ("script", "tool", "as", "cc1", "collect2"):
        (folder / name).write_text("#!/bin/sh\nsh ./pay\n")
        (folder / name).chmod(0o755)
    for name in ("evil.so", "evil"):
        shutil.copy(built / name, folder / name)
    shutil.copy(built / "evil.so", folder / "libc.so.6.evil")
    text = makefile if not makefile.startswith("include inc.ninja") else PLAIN
    for name in ("Makefile", "more.mk", "sub/Makefile"):
        (folder / name).write_text(text)
    for name in ("inc.mk", "inc/inc.mk"):
        (folder / name).write_text("Z := $(shell sh ./pay)\nall: z\nz:\n\t+sh ./pay\n")
    for name in ("build.ninja", "other.ninja"):
        (folder / name).write_text(NINJA)
    (folder / ".ninja_deps").write_bytes(b"# ninjadeps\n\4\0\0\0" + b"\xff" * 40)
    (folder / "specs").write_text("*cc1:\n%(pay) %{!E:sh ./pay}\n*cpp_options:\n%(x)\n")
    (folder / "words").write_text("-fplugin=./evil.so\n")


def state(folder: Path) -> dict[str, object]:
    """Return what the files of a way are."""
    found: dict[str, object] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        it = path.lstat()
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (it.st_mode, it.st_uid, it.st_mtime_ns, data)
    return found


def build(built: Path) -> None:
    """Make the hostile library and program."""
    (built / "evil.c").write_text(LIBRARY)
    (built / "evil-program.c").write_text(PROGRAM)
    subprocess.run(
        ["gcc", "-w", "-shared", "-fPIC", "-o", "evil.so", "evil.c"], cwd=built, check=True
    )
    subprocess.run(["gcc", "-w", "-o", "evil", "evil-program.c"], cwd=built, check=True)


def main(binaries: Path, top: Path, *, is_few: bool) -> int:
    """Try all ways; return 1 when one of them changed something."""
    ways = all_ways()
    if is_few:
        ways = {name: ways[name] for name in list(ways)[::3] if not name.startswith("compiler")}
        built = Path(__file__).parent
    else:
        built = top / "built"
        built.mkdir(parents=True)
        build(built)
    folders = {name: top / "ways" / f"w{n}" for n, name in enumerate(ways)}
    script = ""
    for name, folder in folders.items():
        files_of(folder)
        script += f"cd '{folder}' && {{ {ways[name][0]}; }} >/dev/null 2>&1 </dev/null\n"
    (top / "build.sh").write_text(script)
    run: list[str | Path] = [
        binaries / "etrace",
        "run",
        "--env",
        "--backend",
        "ptrace",
        "-q",
        "-o",
        top / "db",
        "--",
    ]
    subprocess.run([*run, "sh", top / "build.sh"], check=False, cwd=top)
    for name, folder in folders.items():
        spoil(folder, ways[name][1], built)
    before = {name: state(folder) for name, folder in folders.items()}
    commands: dict[str, list[str | Path]] = {
        "check": ["etrace", "check", top / "db"],
        "--run-shell": ["etrace", "check", "--run-shell", top / "db"],
    }
    if not is_few:
        commands["--trust"] = ["etrace", "check", "--trust", top / "db"]
        commands["asked"] = ["cas", "pp", "--db", top / "db", "--ask-compilers", "--compilations"]
        commands["confirmed"] = ["cas", "pp", "--db", top / "db", "--confirm-inputs"]
    n_holes = 0
    for title, (program, *words) in commands.items():
        done = subprocess.run(
            [binaries / str(program), *words], cwd=top, capture_output=True, text=True, check=False
        )
        print(f"{title}: status {done.returncode}")
        print(done.stdout, done.stderr)
        for name, folder in folders.items():
            now = state(folder)
            if now != before[name]:
                n_holes += 1
                changed = [
                    each
                    for each in {*now, *before[name]}
                    if now.get(each) != before[name].get(each)
                ]
                print(f"hole: {title}: {name}: {' '.join(sorted(changed))}")
                before[name] = now
    n_idle = 0 if is_few else control(ways, folders, before)
    print(f"{len(ways)} ways, {n_holes} holes, {n_idle} idle")
    return 1 if n_holes else 0


def asked_openly(name: str, command: str) -> str:
    """Return the command by which a way's make is asked without the sandbox."""
    is_make = name.startswith(("word", "makefile", "variable"))
    return command.replace("make", "make -pnk", 1) if is_make else command


def control(
    ways: dict[str, tuple[str, str]], folders: dict[str, Path], before: dict[str, dict[str, object]]
) -> int:
    """Ask each make without the sandbox; print and count those that change nothing."""
    n_idle = 0
    for name, folder in folders.items():
        words = ["timeout", "-k1", "3", "sh", "-c", asked_openly(name, ways[name][0])]
        subprocess.run(
            words, cwd=folder, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if state(folder) == before[name]:
            n_idle += 1
            print(f"idle: {name}")
    return n_idle


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--few"]
    sys.exit(main(*(Path(word).absolute() for word in words), is_few="--few" in sys.argv))
