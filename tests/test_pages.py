# SPDX-License-Identifier: Apache-2.0
"""The pages of docs: their commands run, and print what the page shows.

Each page has a build on which its commands run (BUILDS). In what they print, numbers may be others,
`...` stands for any text or, on a line of its own, for any lines, and /w for the directory of the
build. An output that belongs to one machine, or to a build that was not like this one, is not
compared (RECORDED). That its commands and options exist is tested of every page.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from databases import write_lua

from etrace.cli.manual.declarations import programs

TOP = Path(__file__).resolve().parents[1]
DOCS = TOP / "docs"
READERS = sorted((DOCS / "readers").glob("*.md"))
BLOCK = re.compile(r"^```(?:console)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: a page for readers fits one screen, as it is read in a browser
MAX_WORDS = 400
#: commands that run until they are stopped, or need what the build does not have
LEFT_OUT = re.compile(
    r"etrace (serve|top|compare|check)\b|curl |unix-tracer|.* --xray|vi "
    r"|cas cache --db x.json|cas pp --(ask|confirm)|.*\b(before|after)\b"
)
#: outputs that another machine or a larger build made
RECORDED = re.compile(
    r"etrace critical-path|cas pp --compilations\b"
    r"|cas export (sbom|compile_commands) .*-o (lua|compile)"
)
#: what made a database that is there already
MADE_BEFORE = ("etrace run", "cas parse")


def examples(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command with the lines that it should print."""
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            while not is_whole(command):
                command += "\n" + lines.pop(0)
            yield command, lines


def is_whole(command: str) -> bool:
    """Return whether no quotation is open at the end of a command."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def expression(lines: list[str], folder: Path) -> str:
    """Return the expression for all of an output."""
    found = ""
    for line in lines:
        if line == "...":
            found += r"(?:.*\n)*?"
            continue
        named = re.sub(r"/w(?=/|:|$)", str(folder), line)
        text = re.escape(named).replace(r"\.\.\.", ".*")
        text = re.sub(r"(?:\\ )+", " +", text)
        found += re.sub(r"\d(?:[\d,]|\\\.(?=\d))*", r"\\d[\\d.,]*", text) + r" *\n"
    return found


def environment(folder: Path) -> dict[str, str]:
    """Return that of a user whose state is in a folder."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return {**os.environ, **own, "PATH": programs, "LC_ALL": "C.UTF-8", "CCACHE_DISABLE": "1"}


def run(command: str, folder: Path) -> tuple[int, str]:
    """Run a command of a page; return its status and what it printed."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(folder.parent), text=True, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout


def statuses_of(command: str, lines: list[str]) -> tuple[int, ...]:
    """Return the exit statuses that a command may have."""
    if any(line.startswith("cas: error") for line in lines):
        return (2,)
    if any(" does not depend on " in line for line in lines):
        return (1,)
    # advice may have nothing to say of a build that is over in a tenth of a second
    return (0, 1) if command == "etrace advise" else (0,)


def make_hello(folder: Path) -> None:
    """Put the demo there."""
    shutil.copytree(TOP / "demo/hello", folder)


LUA_MAKEFILE = """\
linux: src/lua
src/lua: src/lvm.o
\t$(CC) -o $@ $^
src/lvm.o: src/lvm.c src/lvm.h
\t$(CC) -c -o $@ src/lvm.c
"""


def make_small_lua(folder: Path) -> None:
    """Put a project there whose files are named as those of Lua."""
    (folder / "src").mkdir(parents=True)
    (folder / "Makefile").write_text(LUA_MAKEFILE)
    (folder / "src/lvm.h").write_text("#define RESULT 0\n")
    (folder / "src/lvm.c").write_text('#include "lvm.h"\nint main(void) { return RESULT; }\n')


def make_traced_lua(folder: Path) -> None:
    """Put a traced build of that project there."""
    make_small_lua(folder)
    assert run("etrace run --hash --env -- make && cas parse && cas pp", folder)[0] == 0


#: a page -> what makes the directory; write_lua has a trace that is the same on every machine
BUILDS: dict[str, Callable[[Path], object]] = {
    **{f"readers/{path.name}": make_hello for path in READERS},
    "queries.md": write_lua,
    "database.md": write_lua,
    "postprocess.md": write_lua,
    "dependencies.md": write_lua,
    "seeing-a-build.md": make_traced_lua,
    "compilations.md": make_traced_lua,
    "sbom.md": make_traced_lua,
    "hashes.md": make_small_lua,
    "fleet.md": make_small_lua,
    "exports.md": make_small_lua,
}


@pytest.mark.parametrize("page", BUILDS)
def test_the_commands_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    BUILDS[page](folder)
    text = (DOCS / page).read_text("utf-8").replace("/srv/fleet", str(tmp_path / "fleet"))
    found = [(command, lines) for command, lines in examples(text) if not LEFT_OUT.match(command)]
    assert found
    for command, lines in found:
        if BUILDS[page] is write_lua and command.startswith(MADE_BEFORE):
            continue
        status, printed = run(command, folder)
        assert status in statuses_of(command, lines), (command, printed)
        is_recorded = RECORDED.match(command) and BUILDS[page] in (make_small_lua, make_traced_lua)
        if lines and not is_recorded:
            wanted = expression(lines, folder)
            assert re.fullmatch(wanted, printed), (command, lines, printed)


def test_another_output_would_be_noticed(tmp_path: Path) -> None:
    wanted = expression(["3 files  in /w/a", "..."], tmp_path)
    assert re.fullmatch(wanted, f"1,234 files in {tmp_path}/a\nmore\n")
    assert not re.fullmatch(wanted, f"3 file in {tmp_path}/a\n")
    assert not re.fullmatch(wanted, "more\n")


@pytest.mark.parametrize("page", READERS, ids=lambda path: path.stem)
def test_a_page_is_one_screen(page: Path) -> None:
    assert len(page.read_text("utf-8").split()) <= MAX_WORDS


# ---- all commands of all pages have the options that the pages show

#: a command; what follows `--` or a sign of the shell belongs to another
COMMAND = re.compile(
    r"\s*(?:\$ )?(?:sudo )?(?:\S*/)?((?:etrace|cas) (?!response files|pp: )[a-z].*)"
)
PAGES = [TOP / "README.md", *sorted(DOCS.glob("*.md")), *READERS]


def commands_of(page: Path) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the words before the first option, and the options, of each command of a page."""
    for block in BLOCK.findall(page.read_text("utf-8")):
        for line in block.splitlines():
            for part in re.split(r"&&|\|\||[;|>)]| -- ", re.sub(r"\s#\s.*", "", line)):
                found = COMMAND.match(part)
                if not found or not is_whole(found[1]):
                    continue
                words = shlex.split(found[1])
                named = [w for w in words[1:3] if re.fullmatch(r"[a-z][a-z_-]*", w)]
                options = [w.partition("=")[0] for w in words if re.match(r"--?[a-z]", w)]
                yield (words[0], *named), options


@cache
def declared() -> dict[tuple[str, ...], set[str]]:
    """Return the options of each command, by its words; aliases too."""
    found: dict[tuple[str, ...], set[str]] = {}
    for program in programs():
        for command in program.commands or (program.body,):
            options = {name for option in command.options for name in option.names}
            for word in (command.word, *command.aliases):
                found[tuple(filter(None, (program.name, command.parent, word)))] = options
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_command_and_option_is_there(page: Path) -> None:
    for words, options in commands_of(page):
        named = [words[:n] for n in range(len(words), 0, -1) if words[:n] in declared()]
        assert named, words
        assert set(options) <= declared()[named[0]] | {"--help"}, words
