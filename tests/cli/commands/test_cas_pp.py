# SPDX-License-Identifier: Apache-2.0
"""`cas pp` on a real small build: what it says, writes, reuses and leaves alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from databases import capture_database
from terminal import Terminal

from etrace.nfsdb.store import open_database

CAS = Path(sysconfig.get_path("scripts")) / "cas"
MAKEFILE = """\
prog: main.o libpart.a
\tgcc -o $@ main.o libpart.a
libpart.a: part.o
\tcd . && ar rcs $@ $<
%.o: %.c
\tgcc -MD -MF $*.d -DN=1 -c -o $@ $<
"""
SOURCES = {
    "Makefile": MAKEFILE,
    "main.c": '#include "part.h"\nint main(void) { return part(); }\n',
    "part.c": '#include "part.h"\nint part(void) { return 0; }\n',
    "part.h": "int part(void);\n",
}
REUSED = "unchanged: its inputs are the same"


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tree of a build, `tree`, and its database."""
    folder = tmp_path_factory.mktemp("build")
    tree = folder / "tree"
    tree.mkdir()
    for name, text in SOURCES.items():
        (tree / name).write_text(text)
    capture_database(folder, ["make"], tree)
    return folder


@pytest.fixture
def database(captured: Path, tmp_path: Path) -> Path:
    """Return a copy of the database alone, not yet post-processed."""
    for path in captured.glob(".nfsdb*"):
        shutil.copy2(path, tmp_path)
    return tmp_path


def pp(database: Path, *options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [CAS, "pp", "--dbdir", database, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return done


def entries(database: Path) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = json.loads((database / ".nfsdb.json").read_bytes())
    return value


def listing(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Return checksum, time of change and mode of every file below a folder."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
            path.stat().st_mode,
        )
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_one_line_a_phase_says_what_was_found(database: Path) -> None:
    done = pp(database)
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["linked"] == "2 links of 2 modules, archives: 1"
    assert lines["patterns"] == "0 matches of 0 command patterns"
    assert list(lines) == ["wrappers", "patterns", "linked", "compilations", "graph", "targets"]
    assert done.stderr == ""  # no bar: this is not a terminal; no word about what is usual


def test_the_build_tree_is_as_it_was(captured: Path, database: Path) -> None:
    before = listing(captured / "tree")
    folders = {str(path): path.stat().st_mtime_ns for path in (captured / "tree", captured)}
    pp(database)
    assert listing(captured / "tree") == before
    assert folders == {name: Path(name).stat().st_mtime_ns for name in folders}


def test_the_json_gets_the_keys_and_keeps_all_else(captured: Path, database: Path) -> None:
    before = entries(database)
    (database / ".bas_config").write_text('{"exclude_command_variants": {"*": ["make*", "ar *"]}}')
    pp(database)
    after = entries(database)
    assert [{k: v for k, v in e.items() if k not in "nmdlt"} for e in after] == before
    tree = os.path.realpath(captured / "tree")
    assert {(e["l"], e["t"]) for e in after if "l" in e} == {
        (f"{tree}/prog", 1), (f"{tree}/libpart.a", 0)
    }  # fmt: skip
    assert {tuple(e["v"][:2]): e["n"] for e in after if e["b"].endswith(("/make", "/ar"))} == {
        ("make",): "gA==", ("ar", "rcs"): "QA=="
    }  # fmt: skip
    (shell,) = {e["p"] for e in after if e["b"].endswith("/sh")}
    assert {e["b"].rpartition("/")[2]: e["m"] for e in after if "m" in e} == {
        "": shell, "ar": shell
    }  # fmt: skip
    assert all(e["d"]["f"] for e in after if "d" in e)


def test_only_the_phases_that_are_named_run(database: Path) -> None:
    assert pp(database, "--linked", "--wrappers").stdout.split()[::1][0] == "wrappers"
    tables = open_database(database).tables
    assert "linked" in tables
    assert "wrappers" in tables
    assert "compilations" not in tables


def test_what_is_still_right_is_reused_and_force_makes_it_again(database: Path) -> None:
    pp(database, "--linked")
    stamp = (database / ".nfsdb.img").stat().st_ino
    assert pp(database, "--linked").stdout == f"linked        {REUSED}\n"
    assert (database / ".nfsdb.img").stat().st_ino == stamp
    written = (database / ".nfsdb.json").stat().st_ino
    assert "2 links" in pp(database, "--linked", "--force").stdout
    assert (database / ".nfsdb.json").stat().st_ino != written


def test_a_changed_configuration_renews_what_depends_on_it(database: Path) -> None:
    pp(database, "--linked", "--patterns")
    (database / ".bas_config").write_text('{"exclude_command_variants": {"*": ["*gcc*"]}}')
    patterns, linked = pp(database, "--linked", "--patterns").stdout.splitlines()
    assert patterns.endswith("of 1 command pattern")
    assert linked.endswith(REUSED)


def test_a_new_trace_makes_all_of_it_again(database: Path) -> None:
    pp(database, "--linked")
    kept = [entry for entry in entries(database) if not entry["b"].endswith("/ar")]
    for entry in kept:
        entry.pop("l", None)
        entry.pop("t", None)
    (database / ".nfsdb.json").write_text(json.dumps(kept))
    assert "1 link of 1 module" in pp(database, "--linked").stdout


def test_the_image_is_not_stale_after_its_json_was_written(database: Path) -> None:
    pp(database)
    stamp = (database / ".nfsdb.img").stat().st_ino
    open_database(database)
    assert (database / ".nfsdb.img").stat().st_ino == stamp


def test_the_json_can_be_left_alone_and_written_later(database: Path) -> None:
    pp(database, "--linked", "--no-json")
    assert not any("l" in entry for entry in entries(database))
    pp(database, "--linked")
    assert sum("l" in entry for entry in entries(database)) == 2


def test_an_image_alone_is_enough(database: Path) -> None:
    open_database(database)
    (database / ".nfsdb.json").unlink()
    pp(database, "--linked")
    assert not (database / ".nfsdb.json").exists()
    assert open_database(database)["linked"].n_rows == 2


def test_quiet_prints_nothing(database: Path) -> None:
    done = pp(database, "-q")
    assert (done.stdout, done.stderr) == ("", "")


def test_a_terminal_sees_bars_while_it_works(database: Path) -> None:
    command = [str(CAS), "pp", "--dbdir", str(database)]
    with Terminal(command, database, dict(os.environ)) as terminal:
        terminal.wait_for("2 links of 2 modules")
        assert "\x1b[" in terminal.log


def test_an_unknown_key_is_reported_and_a_wrong_type_is_an_error(database: Path) -> None:
    config = database / ".bas_config"
    config.write_text('{"ar_specs": []}')
    assert pp(database, "--linked").stderr == (
        f"cas pp: warning: {config}: unknown key 'ar_specs'; did you mean ar_spec?\n"
    )
    config.write_text('{"ar_spec": "*/ar"}')
    before = listing(database)
    done = pp(database, "--force", status=2)
    assert f"{config}: ar_spec is not a list of strings" in done.stderr
    assert listing(database) == before


def test_without_a_database_it_says_how_to_make_one(tmp_path: Path) -> None:
    assert "no database" in pp(tmp_path, status=2).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_it_leaves_a_whole_database(database: Path, number: signal.Signals) -> None:
    """At one moment after another: every file is one that a whole run wrote."""
    pp(database)
    wanted = {path.name for path in database.iterdir()}
    whole = entries(database)
    for n_ms in range(100, 400, 75):
        process = subprocess.Popen(
            [CAS, "pp", "--dbdir", database, "--force", "-q"],
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(n_ms / 1000)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            process.wait()
        assert entries(database) == whole
        assert open_database(database)["linked"].n_rows == 2
    left = {path.name for path in database.iterdir()} - wanted
    assert not left or (number is signal.SIGKILL and all(name.endswith(".tmp") for name in left))


def test_keys_of_another_tool_are_not_lost(database: Path) -> None:
    """What etrace does not know it cannot write: such a JSON stays unchanged."""
    path = database / ".nfsdb.json"
    entries = json.loads(path.read_text())
    entries[3]["custom"] = {"any": ["thing"]}
    path.write_text(json.dumps(entries))
    before = path.read_bytes()
    done = subprocess.run([CAS, "pp"], cwd=database, capture_output=True, text=True, check=True)
    assert path.read_bytes() == before
    assert "1 keys that etrace does not know" in done.stderr
    assert open_database(database)["linked"].n_rows == 2
