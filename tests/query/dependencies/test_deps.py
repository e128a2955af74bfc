# SPDX-License-Identifier: Apache-2.0
"""docs/dependencies.md, on traces that show one thing each, real commands and a build."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import libetrace
import pytest
from builders import O_RDWR, O_WRONLY, TraceBuilder
from databases import GOLDEN, capture_database, database_of
from libetrace.depend import configuration
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image
from query.traced_builds import NEW, SH, A, B, C, D, Opened, command, names, shell, users

from etrace.errors import EtraceError
from etrace.nfsdb.products import rewrite
from etrace.nfsdb.store import open_database
from etrace.postprocess import wrappers
from etrace.query.dependencies import deps, moddeps, rdeps, revmoddeps, walk
from etrace.query.select.file_names import FLAGS, PATTERNS, split_rules

DATA = Path(__file__).parents[2] / "data"
PIPES, ANY_TIME = Rules(pipes=True), Rules(is_ordered=False)


def compiled() -> TraceBuilder:
    """A trace of cc a.c, cc b.c, ld."""
    t = command(shell(), A, "cc a.c", "a.c a.h", "a.o")
    command(t, B, "cc b.c", "b.c a.h", "b.o")
    return command(t, C, "ld -o prog", "a.o b.o", "prog")


# ---- files and time ------------------------------------------------------------------------------


def test_a_program_depends_on_objects_and_what_they_were_made_of(opened: Opened) -> None:
    d = opened(compiled())
    assert names(d, "/w/prog") == {"a.o", "b.o", "a.c", "b.c", "a.h"}
    assert names(d, "/w/a.o") == {"a.c", "a.h"}
    assert names(d, "/w/a.c") == set()
    assert users(d, "/w/a.h") == {"a.o", "b.o", "prog"}


def test_what_was_written_after_it_was_read_is_no_input(opened: Opened) -> None:
    t = command(shell(), A, "ld -o old", "x.o", "old")
    d = opened(command(t, B, "cc x.c", "x.c", "x.o"))
    assert names(d, "/w/old") == {"x.o"}
    assert names(d, "/w/old", ANY_TIME) == {"x.o", "x.c"}
    assert users(d, "/w/x.c") == {"x.o"}
    assert users(d, "/w/x.c", ANY_TIME) == {"x.o", "old"}


def test_what_a_process_read_after_it_had_written_is_no_input(opened: Opened) -> None:
    t = shell().use(SH, "/w/in1").use(SH, "/w/out1", flags=NEW)
    d = opened(t.use(SH, "/w/in2").use(SH, "/w/out2", flags=NEW).exit(SH))
    assert names(d, "/w/out1") == {"in1"}
    assert names(d, "/w/out2") == {"in1", "in2"}


def test_a_file_written_again_depends_on_what_was_read_until_then(opened: Opened) -> None:
    t = shell().use(SH, "/w/out", flags=NEW).use(SH, "/w/in").use(SH, "/w/out", flags=O_WRONLY)
    assert names(opened(t.use(SH, "/w/late").exit(SH)), "/w/out") == {"in"}


def test_a_redirected_command_writes_until_it_ends(opened: Opened) -> None:
    t = shell().fork(SH, A).open(A, "/w/out", flags=NEW).dup(A, 3, 1).close(A, 3)
    t.exec(A, "/bin/sort", ["sort", "in"]).use(A, "/w/in").exit(A)
    assert names(opened(t), "/w/out") == {"in"}


def test_a_name_used_for_several_things_is_several_things(opened: Opened) -> None:
    t = command(shell(), A, "gen 1", "in1", "tmp")
    t.fork(SH, B).exec(B, "/bin/mv").rename(B, "/w/tmp", "/w/out1").exit(B)
    command(t, C, "gen 2", "in2", "tmp")
    t.fork(SH, D).exec(D, "/bin/mv").rename(D, "/w/tmp", "/w/out2").exit(D)
    d = opened(t)
    assert names(d, "/w/out1") == {"tmp", "in1"}
    assert names(d, "/w/out2") == {"tmp", "in2"}  # the first tmp was renamed away
    assert names(d, "/w/out1", ANY_TIME) == {"tmp", "in1", "in2"}


def test_a_rename_in_the_same_process_is_followed(opened: Opened) -> None:
    t = shell().fork(SH, A).exec(A, "/bin/cc").use(A, "/w/a.c").use(A, "/w/t.tmp", flags=NEW)
    d = opened(t.rename(A, "/w/t.tmp", "/w/a.o").use(A, "/w/late.h").exit(A))
    assert names(d, "/w/a.o") == {"a.c", "t.tmp"}


def test_hard_and_symbolic_links_are_followed(opened: Opened) -> None:
    t = command(shell(), A, "cc a.c", "a.c", "a.o").link(SH, "/w/a.o", "/w/hard.o")
    d = opened(t.symlink(SH, "a.o", "/w/soft.o", resolved="/w/a.o").exit(SH))
    assert names(d, "/w/hard.o") == {"a.o", "a.c"}
    assert names(d, "/w/soft.o") == {"a.o", "a.c"}


def test_a_file_that_changes_itself_depends_on_the_rest_alone(opened: Opened) -> None:
    t = command(shell(), A, "cc x.c", "x.c", "x.o").fork(SH, B).exec(B, "/bin/strip")
    t.open(B, "/w/x.o", flags=O_RDWR).use(B, "/w/strip.conf").close(B).exit(B)
    assert names(opened(t), "/w/x.o") == {"x.c", "strip.conf"}


def test_a_cycle_ends(opened: Opened) -> None:
    t = shell().fork(SH, A).fork(SH, B)
    t.open(A, "/w/x", flags=O_RDWR).open(B, "/w/y", flags=O_RDWR)
    t.open(A, "/w/y", fd=4).open(B, "/w/x", fd=4).use(B, "/w/in", fd=5).exit(A).exit(B)
    d = opened(t)
    assert names(d, "/w/x") == {"y", "in"}
    assert names(d, "/w/y") == {"x", "in"}


# ---- processes -----------------------------------------------------------------------------------


def test_threads_of_a_process_are_one(opened: Opened) -> None:
    t = shell().fork(SH, A).exec(A, "/bin/lld", ["lld"]).thread(A, B).thread(A, C)
    t.use(B, "/w/a.o", fd=5).use(C, "/w/prog", flags=NEW, fd=6).exit(B).exit(C).exit(A)
    assert names(opened(t), "/w/prog") == {"a.o"}


def test_children_write_what_their_shell_opened_for_them(opened: Opened) -> None:
    t = shell().open(SH, "/w/out", flags=NEW).dup(SH, 3, 1).close(SH, 3)
    command(t, A, "cat a", "a")
    d = opened(command(t, B, "cat b", "b").exit(SH))
    assert names(d, "/w/out") == {"a", "b"}
    assert users(d, "/w/b") == {"out"}


def test_a_child_reads_what_its_shell_opened_for_it(opened: Opened) -> None:
    t = shell().open(SH, "/w/in", fd=0)
    assert names(opened(command(t, A, "sort", "", "out").exit(SH)), "/w/out") == {"in"}


def test_a_program_that_the_build_made_is_an_input_of_what_it_makes(opened: Opened) -> None:
    t = command(shell(), A, "cc gen.c", "gen.c", "gen").fork(SH, B).exec(B, "/w/gen", ["./gen"])
    d = opened(t.use(B, "/w/table.h", flags=NEW).exit(B))
    assert names(d, "/w/table.h") == {"gen", "gen.c"}
    with_all = names(d, "/w/table.h", Rules(all_programs=True))
    assert with_all == {"gen", "gen.c", "/bin/cc"}


def test_data_goes_through_pipes_in_order_of_time(opened: Opened) -> None:
    t = shell().pipe(SH, 3, 4).fork(SH, A).close(SH, 4).fork(SH, B).close(SH, 3)
    t.close(A, 3).dup(A, 4, 1).close(A, 4).exec(A, "/bin/cat", ["cat", "in1"]).use(A, "/w/in1")
    t.dup(B, 3, 0).close(B, 3).open(B, "/w/out", flags=NEW, fd=5).dup(B, 5, 1).close(B, 5)
    t.exec(B, "/bin/sort", ["sort", "-", "in2"]).use(B, "/w/in2").exit(A).exit(B).use(SH, "/w/x")
    d = opened(t.exit(SH))
    assert names(d, "/w/out") == {"in1", "in2"}
    assert names(d, "/w/out", Rules(pipes=False)) == {"in2"}
    assert names(d, "/w/out", Rules(exclude_commands=(b"cat *",))) == {"in2"}
    assert users(d, "/w/in1") == {"out"}


# ---- what is left out ----------------------------------------------------------------------------


def test_an_excluded_file_is_listed_and_not_followed(opened: Opened) -> None:
    d = opened(compiled())
    assert names(d, "/w/prog", Rules(exclude_files=(b"*/a.o",))) == {"a.o", "b.o", "b.c", "a.h"}
    keep = Rules(exclude_files=(b"*.o", b"*/prog"), negate=True)
    assert names(d, "/w/prog", keep) == {"a.o", "b.o", "a.c", "b.c", "a.h"}
    assert names(d, "/w/prog", Rules(exclude_files=(b"*/prog",))) == set()


def test_the_shipped_configuration_leaves_devices_and_response_files_out(opened: Opened) -> None:
    t = command(shell(), A, "gen", "in", "args.rsp")
    assert names(opened(command(t, B, "ld @args.rsp", "args.rsp", "prog")), "/w/prog") == {
        "args.rsp"
    }


def test_an_excluded_command_takes_none_of_its_children_along(opened: Opened) -> None:
    t = TraceBuilder("/w").exec(SH, "/bin/make", ["make", "all"], cwd="/w").use(SH, "/w/Makefile")
    command(t, A, "sh -c cc", "", "")
    d = opened(command(command(t, B, "cc a.c", "a.c", "a.o"), C, "ld", "a.o", "prog").exit(SH))
    assert names(d, "/w/prog", Rules(exclude_commands=(b"make*",))) == {"a.o", "a.c"}
    assert names(d, "/w/prog", Rules(exclude_commands=(b"cc *",))) == {"a.o"}
    assert names(d, "/w/prog", Rules(exclude_commands=(b"ld",))) == set()
    both = Rules(exclude_commands=(b"ld", b"cc *"), negate=True)
    assert names(d, "/w/prog", both) == {"a.o", "a.c"}


def test_a_shell_that_becomes_the_command_is_excluded_for_itself_alone(opened: Opened) -> None:
    t = shell().fork(SH, A).exec(A, "/bin/sh", ["sh", "-c", "exec cc"]).use(A, "/w/profile")
    d = opened(t.exec(A, "/bin/cc", ["cc"]).use(A, "/w/a.c").use(A, "/w/a.o", flags=NEW).exit(A))
    assert names(d, "/w/a.o") == {"profile", "a.c"}
    assert names(d, "/w/a.o", Rules(exclude_commands=(b"sh *",))) == {"a.c"}
    assert names(d, "/w/a.o", Rules(exclude_commands=(b"cc",))) == set()


def test_the_configuration_leaves_out_by_module(opened: Opened) -> None:
    d = opened(compiled())
    d._config = configuration.load(d.image.path.parent)._replace(
        exclude_command_variants={"*/prog": ("cc a.c",), "*/other": ("ld*",)},
        additional_module_exclude_pattern_variants={"*/prog": ("*/b.o",)},
    )
    assert names(d, "/w/prog") == {"a.o", "b.o"}
    assert names(d, "/w/b.o") == {"b.c", "a.h"}


def test_wrapped_commands_are_one_with_all_that_their_shell_started(
    tmp_path: Path, opened: Opened
) -> None:
    t = TraceBuilder("/w").exec(D, "/bin/make", ["make"]).fork(D, SH)
    t.exec(SH, "/bin/sh", ["sh", "-c", "cat in1 in2 | sort - in3 > out"])
    command(t, A, "cat in1 in2", "in1 in2")
    d = opened(command(t, B, "sort - in3", "in3", "out").exit(SH).exit(D))
    assert names(d, "/w/out") == {"in3"}
    with pytest.raises(libetrace.error, match="no wrappers yet"):
        names(d, "/w/out", Rules(is_wrapped=True))
    wrapped = with_wrappers(d.image)
    assert names(wrapped, "/w/out", Rules(is_wrapped=True)) == {"in1", "in2", "in3"}


def with_wrappers(image: Image) -> Dependencies:
    """Add the table of wrapping shells."""
    from etrace.nfsdb.products import StringTable
    from etrace.postprocess.run import Work

    config = configuration.load(image.path.parent)
    work = Work(image, StringTable(image), config, 1, lambda *_: None)
    rewrite(image, wrappers.PHASE.run(work))
    return Dependencies(open_database(image.path.parent))


# ---- names ---------------------------------------------------------------------------------------


def test_a_file_may_be_called_by_the_end_of_its_path_or_a_glob(opened: Opened) -> None:
    d = opened(compiled())
    assert names(d, "prog") == names(d, "/w/prog")
    assert names(d, "w/a.o") == {"a.c", "a.h"}
    assert names(d, "/w/*.o") == {"a.c", "b.c", "a.h"}
    with pytest.raises(EtraceError) as error:
        names(d, "prgo")
    assert error.value.message == "the build opened no prgo"
    assert error.value.hint == "did you mean one of these: /w/prog"


def test_an_end_that_several_paths_have_is_an_error(opened: Opened) -> None:
    d = opened(command(shell(), A, "cc", "x/main.o y/main.o", "prog"))
    with pytest.raises(EtraceError) as error:
        names(d, "main.o")
    assert error.value.message == "main.o could be 2 files"
    assert error.value.hint == "write more of its path: /w/x/main.o, /w/y/main.o"


def test_options_for_one_file_are_in_its_name(opened: Opened) -> None:
    d = opened(compiled())
    assert names(d, "[file=/w/prog,exclude_cmd=cc a.c,exclude=*/b.o]") == {"a.o", "b.o"}
    own = b"[file=a\\,b,direct=true,negate_pattern=1,ordered=no,exclude_cmd=x,exclude_cmd=y z]"
    assert split_rules(own, Rules()) == (
        b"a,b",
        Rules(is_direct=True, negate=True, is_ordered=False, exclude_commands=(b"x", b"y z")),
    )


def test_every_rule_of_the_commands_has_an_option_for_one_file() -> None:
    given_by_callers = {"exclude_paths", "command_numbers", "modules"}
    assert {*FLAGS.values(), *PATTERNS.values()} == {*Rules._fields} - given_by_callers


@pytest.mark.parametrize(
    "name", ["[direct=true]", "[file=a,x=1]", "[file=a,direct=2]", "[file=a,b]"]
)
def test_wrong_options_for_a_file_are_reported(name: str) -> None:
    with pytest.raises(EtraceError):
        split_rules(name.encode(), Rules())


# ---- modules -------------------------------------------------------------------------------------


def test_modules_are_listed_and_not_followed_when_direct(image: Image) -> None:
    d = Dependencies(image)
    hello, archive = (image.find_path(b"/src/" + name) for name in (b"hello", b"libutil.a"))
    rules = Rules(is_ordered=False)
    direct = {"/src/libutil.a", "/src/main.o", "/src/main.c", "/src/util.h"}
    assert names(d, "/src/hello", rules._replace(is_direct=True)) == direct
    assert names(d, "/src/hello", rules) == direct | {"/src/util.o", "/src/util.c"}
    assert moddeps(d, [b"hello"], rules) == [archive]
    assert revmoddeps(d, [b"libutil.a"], rules) == [hello]
    assert rdeps(d, [b"util.h"], rules) == [hello, archive]
    assert rdeps(d, [b"util.c"], rules._replace(is_direct=True)) == [archive]
    with pytest.raises(EtraceError, match="not a linked module"):
        revmoddeps(d, [b"util.h"], rules)


def test_modules_are_looked_for_by_their_own_exclusions(image: Image) -> None:
    config = configuration.load(image.path.parent)
    variants = config._replace(exclude_command_variants={"*/hello": ("ar *",)})
    d = Dependencies(image, variants)
    archive = image.find_path(b"/src/libutil.a")
    assert rdeps(d, [b"util.c"], Rules()) == [archive]
    assert names(d, "/src/hello") == {"/src/libutil.a", "/src/main.o", "/src/main.c", "/src/util.h"}


# ---- real commands and builds --------------------------------------------------------------------

SCRIPTS = {
    "{ cat a; cat b; } > out": {"a", "b"},
    "exec > out; cat a; cat b": {"a", "b"},
    "cat a b | sort - c > out": {"a", "b", "c"},
    "(cat) < a > out": {"a"},
    "read x < a; echo $x > out": {"a"},
    "echo > out; cat a >> out; cat b > other": {"a"},
    "cat a > t; mv t out; cat b > t": {"t", "a"},
    "cat a > t; ln t out": {"t", "a"},
    "x=$(cat a); echo $x > out": {"a"},
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_real_shells_are_understood(script: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name in "abc":
        (work / name).write_text(f"{name}\n")
    image = capture_database(tmp_path, ["/bin/sh", "-c", script], work)
    found = deps(Dependencies(image), [b"out"], Rules())
    inside = [Path(os.fsdecode(path)) for path in found]
    assert {path.name for path in inside if path.parent == work} == SCRIPTS[script]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dependencies]:
    """A build of which gcc itself says in depfiles what it read."""
    folder = tmp_path_factory.mktemp("generated")
    work = folder / "work"
    shutil.copytree(DATA / "generated_build", work)
    return work, Dependencies(capture_database(folder, ["make", "-j2", "CC=gcc"], work))


def depfile(path: Path) -> set[str]:
    """Return what a depfile names, as absolute paths."""
    text = path.read_text().partition(":")[2].replace("\\\n", " ")
    return {os.path.realpath(path.parent / name) for name in text.split()}


@pytest.mark.parametrize("source", ["a", "m", "gen"])
def test_everything_that_a_depfile_names_is_found(
    generated: tuple[Path, Dependencies], source: str
) -> None:
    work, d = generated
    made = work / ("gen" if source == "gen" else f"{source}.o")
    wanted = depfile(work / f"{source}.d")
    assert wanted
    found = {os.path.realpath(path) for path in names(d, str(made))}
    assert wanted <= found


def test_a_generated_header_leads_to_its_generator_and_its_input(
    generated: tuple[Path, Dependencies],
) -> None:
    work, d = generated
    own = {path for path in names(d, "a.o") if path.startswith(f"{work}/")}
    files = {"a.c", "table.h", "table.h.tmp", "gen", "gen.c", "table.in"}
    assert own == {f"{work}/{name}" for name in files}
    assert {path for path in names(d, "m.o") if path.startswith(f"{work}/")} == {f"{work}/m.c"}
    assert f"{work}/prog" in users(d, "table.in")


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Image:
    import lzma

    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    return database_of(tmp_path_factory.mktemp("lua"), trace)


#: the ancestor's counts (lua 295 and 128, luac 296 and 137, liblua.a 276) hold the module itself
LUA = {"src/lua": (294, 127), "src/luac": (295, 136), "src/liblua.a": (275, 275)}


@pytest.mark.parametrize("module", LUA)
def test_a_real_build_has_the_known_numbers(lua: Image, module: str) -> None:
    d, root = Dependencies(lua), b"/tmp/b/lua-5.4.4/src/"
    d.modules = bytearray(lua["paths"].n_rows)
    for name in (b"lua", b"luac", b"liblua.a"):
        d.modules[lua.find_path(root + name)] = 1
    for rules in (Rules(), ANY_TIME):
        full = walk(d, [module.encode()], rules)
        direct = walk(d, [module.encode()], rules._replace(is_direct=True))
        assert (len(full.paths), len(direct.paths)) == LUA[module]


def test_threads_of_a_command_are_that_command_once(opened: Opened) -> None:
    t = shell().fork(SH, A).exec(A, "/bin/rustc", ["rustc", "a.rs"], cwd="/w")
    for thread, part in ((B, "/w/1.o"), (C, "/w/2.o")):
        t.thread(A, thread).use(thread, "/w/a.rs").use(thread, part, flags=NEW)
    t.use(A, "/w/1.o").use(A, "/w/2.o").use(A, "/w/a", flags=NEW)
    dependencies = opened(t.exit(B).exit(C).exit(A))
    walked = walk(dependencies, [b"/w/a"], Rules())
    executions = dependencies.image["executions"]
    assert len(walked.executions) == 3
    assert [executions["upid"][row] for row in walked.commands] == [A]
