# SPDX-License-Identifier: Apache-2.0
"""`cas deps`, `nfsdb.fdeps` and the summary give what docs/dependencies.md says, for every path.

The rule in plain Python (tests/dependency_rule.py) is followed from every path of every database.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import databases
import libetrace
import pytest
from builders import O_RDWR, O_WRONLY, TraceBuilder
from databases import database_of
from dependency_rule import Rule
from libetrace.depend.configuration import Config, Rules, load
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image
from query.traced_builds import NEW, SH, A, B, C, D, command, shell

from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess
from etrace.query import summary
from etrace.query.dependencies import walk


def piped() -> TraceBuilder:
    """A trace of `cat in1 | sort - in2 > out` in a shell, and of a fork that executes nothing."""
    t = TraceBuilder("/w").exec(D, "/bin/make", ["make"]).fork(D, SH)
    t.exec(SH, "/bin/sh", ["sh", "-c", "cat in1 | sort - in2 > out"], cwd="/w")
    t.pipe(SH, 3, 4).fork(SH, A).close(SH, 4).fork(SH, B).close(SH, 3).close(A, 3)
    t.dup(A, 4, 1).close(A, 4).exec(A, "/bin/cat", ["cat", "in1"]).use(A, "/w/in1")
    t.dup(B, 3, 0).close(B, 3).open(B, "/w/out", flags=NEW, fd=5).dup(B, 5, 1).close(B, 5)
    t.exec(B, "/bin/sort", ["sort", "-", "in2"]).use(B, "/w/in2").exit(A).exit(B)
    t.fork(SH, C).use(C, "/w/in3").use(C, "/w/out", flags=O_WRONLY).use(
        C, "/w/own", flags=NEW
    ).exit(C)
    return t.exit(SH).exit(D)


def overwritten() -> TraceBuilder:
    """A trace of names that stand for several files, links, renames, devices, a generator."""
    t = command(shell(), A, "gen 1", "in1", "f gen").link(SH, "/w/f", "/w/hard")
    t.symlink(SH, "f", "/w/soft", resolved="/w/f").rename(SH, "/w/hard", "/w/moved")
    command(t, B, "cc f", "f soft", "out1")
    t.fork(SH, C).exec(C, "/w/gen", ["./gen", "2"], cwd="/w").use(C, "/w/in2")
    t.use(C, "/w/f", flags=NEW).use(C, "/dev/null", flags=NEW).open(C, "/w/f", flags=O_RDWR)
    t.use(C, "/w/late", fd=5).close(C).exit(C)
    return command(t, D, "cc f", "f moved soft /dev/null", "out2").exit(SH)


def of_trace(say: Callable[[], TraceBuilder]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        folder.mkdir()
        database_of(folder, say().trace())
        return folder

    return make


DATABASES = {
    "small": databases.write_database,
    "parsed": databases.write_parsed,
    "piped": of_trace(piped),
    "overwritten": of_trace(overwritten),
    "lua": databases.write_lua,
}
CONFIGURED = Config(
    **{
        **{name: getattr(load(Path("/nonexistent")), name) for name in Config._fields},
        "dependency_exclude_patterns": ("*.rsp", "*/liblua.a"),
        "additional_module_exclude_pattern_variants": {"*/out*": ("*/in2",), "*lua": ("*/l*.o",)},
        "exclude_command_variants": {
            "*/out": ("cat *",),
            "*lua*": ("*cc1* lapi.c *",),
            "*": ("ar *",),
        },
        "module_dependencies_exclude_with_pipes": ("*/out",),
    }
)
SHIPPED = load(Path("/nonexistent"))
RULES = {
    "default": Rules(),
    "any time": Rules(is_ordered=False),
    "no pipes": Rules(pipes=False),
    "pipes": Rules(pipes=True),
    "direct": Rules(is_direct=True),
    "direct to named": Rules(is_direct=True, modules=(b"/w/f", b"/src/main.o")),
    "wrapped": Rules(is_wrapped=True),
    "programs": Rules(all_programs=True),
    "files": Rules(exclude_files=(b"*.o", b"*/f"), exclude_paths=(b"/w/in2",)),
    "files negated": Rules(exclude_files=(b"*.o", b"*/out*", b"*/f", b"*lua"), negate=True),
    "commands": Rules(exclude_commands=(b"cat *", b"cc1 *", b"sh *", b"make*")),
    "commands negated": Rules(
        exclude_commands=(b"sort*", b"*ld *", b"cc *", b"./gen*"), negate=True
    ),
    "numbers": Rules(command_numbers=(0, 2)),
    "numbers and commands negated": Rules(
        command_numbers=(0, 1), exclude_commands=(b"ld *", b"sh *"), negate=True
    ),
}


def test_every_rule_is_compared() -> None:
    default = Rules()
    for name in Rules._fields:
        values = {getattr(rules, name) for rules in RULES.values()}
        assert values - {getattr(default, name)}, name


@pytest.fixture(scope="module", params=DATABASES)
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """A database with all that rules may ask for."""
    folder = DATABASES[request.param](tmp_path_factory.mktemp("database") / "build")
    phases = ("wrappers", "patterns", "linked")[: 2 if request.param == "small" else 3]
    postprocess(open_database(folder), CONFIGURED, phases)
    return open_database(folder)


def every_path(image: Image) -> Iterator[tuple[int, bytes]]:
    for row in range(image["paths"].n_rows):
        yield row, image.path_string(row)


def fdeps(db: libetrace.nfsdb, path: bytes, rules: Rules) -> list[str]:
    return db.fdeps(
        path, direct=rules.is_direct, negate_pattern=rules.negate, wrap_deps=rules.is_wrapped,
        use_pipes=rules.pipes, exclude_files=rules.exclude_paths,
        exclude_patterns=rules.exclude_files, exclude_commands=rules.exclude_commands,
        exclude_commands_index=rules.command_numbers, ordered=rules.is_ordered,
        all_modules=rules.modules,
    )[1]  # fmt: skip


@pytest.mark.parametrize("config", [SHIPPED, CONFIGURED], ids=["shipped", "configured"])
@pytest.mark.parametrize("name", RULES)
def test_every_path_depends_on_what_the_rule_says(image: Image, name: str, config: Config) -> None:
    rules = known(RULES[name], image)
    rule, d = Rule(image, config, rules), Dependencies(image, config)
    for row, path in every_path(image):
        assert set(walk(d, [path], rules).paths) == rule.dependencies(row), path


def known(rules: Rules, image: Image) -> Rules:
    """Return rules that name the modules which the image has."""
    if rules.modules is None:
        return rules
    return rules._replace(modules=tuple(p for p in rules.modules if image.find_path(p) >= 0))


@pytest.mark.parametrize("name", [name for name in RULES if name != "programs"])
def test_the_library_gives_what_the_command_gives(image: Image, name: str) -> None:
    rules = known(RULES[name], image)
    db, d = libetrace.nfsdb.from_image(image), Dependencies(image)
    for _, path in every_path(image):
        wanted = [os.fsdecode(image.path_string(row)) for row in walk(d, [path], rules).paths]
        assert fdeps(db, path, rules) == wanted, path


def test_modules_and_the_reverse_give_the_same(image: Image) -> None:
    db, rule = libetrace.nfsdb.from_image(image), Rule(image, SHIPPED, Rules())
    modules = [path for path, _ in db.linked_module_paths()]
    wanted = {path: rule.dependencies(rule.row[path]) for path in modules}
    for path, rows in wanted.items():
        assert [o.path for o in db.mdeps(path)] == [rule.paths[row] for row in sorted(rows)]
    for row, name in every_path(image):
        assert db.rdeps(name, recursive=True) == {path for path in modules if row in wanted[path]}


def test_a_summary_counts_the_same(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "N_PRODUCTS", 1 << 20)
    monkeypatch.setattr(summary, "_kind", lambda _: "executable")
    monkeypatch.setattr(summary, "_size", lambda _: 1)
    rule = Rule(image, SHIPPED, Rules())
    found = {
        product.path: sum(product.files.values()) for product in summary.summarise(image).products
    }
    written = {use.path for use in rule.build.uses if use.writes}
    assert found.keys() >= {
        rule.paths[row] for row in written if "/dev/" not in rule.paths[row]
    } - {rule.paths[link.new] for link in rule.links}
    for path, n_files in found.items():
        assert n_files == len(rule.dependencies(rule.row[path])), path
