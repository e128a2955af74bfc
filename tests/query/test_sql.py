# SPDX-License-Identifier: Apache-2.0
"""SQL over the columns of a database, by the real DuckDB, and what it says without it."""

from __future__ import annotations

import builtins
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import databases
import pytest
import trying
from libetrace.image.file import Image
from terminal import Terminal

from etrace.cli.main import cas
from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database
from etrace.query import sql

#: `cas`, whose end is that of a program
ENTRY = """
import gc, sys
sys.argv[0] = "cas"
from etrace.cli.main import cas
sys.exit(cas(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.write_database(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def image(build: Path) -> Image:
    return open_database(build)


def answer(image: Image, statement: str) -> list[tuple[Any, ...]]:
    return list(sql.ask(image, statement).rows)


def test_paths_are_text_and_accesses_letters(image: Image) -> None:
    assert answer(
        image,
        "SELECT e.program, o.access FROM opens o JOIN executions e ON e.row = o.execution"
        " WHERE o.path = '/src/main.o' ORDER BY 1",
    ) == [("/usr/bin/ld", "r"), ("/usr/lib/cc1", "w")]


def test_argv_is_a_list(image: Image) -> None:
    assert answer(image, "SELECT argv FROM executions WHERE program = '/usr/bin/make'") == [
        (["make", "hello"],)
    ]


def test_no_row_is_null(image: Image) -> None:
    assert answer(image, "SELECT count(*) FROM executions WHERE parent IS NULL") == [(2,)]
    assert answer(image, "SELECT count(*) FROM executions WHERE program IS NULL") == [(8,)]


def test_a_tree_can_be_walked(image: Image) -> None:
    found = answer(
        image,
        "SELECT p.program FROM executions e JOIN executions p ON p.row = e.parent"
        " WHERE e.program = '/usr/bin/ld'",
    )
    assert found == [("/usr/bin/gcc",)]


def test_bytes_that_are_not_utf8_are_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / ".nfsdb.json").write_text('[{"p":1,"x":0,"w":"/a\\udcff"}]')
    assert answer(open_database(tmp_path), "SELECT cwd FROM executions") == [("/a\\xff",)]


def test_an_empty_database_can_be_asked(tmp_path: Path) -> None:
    (tmp_path / ".nfsdb.json").write_text("[]")
    assert answer(open_database(tmp_path), "SELECT count(*) FROM opens") == [(0,)]


ENDLESS = "SELECT count(*) FROM range(10000000000) a, range(10000000000) b"
ROWS = "SELECT a.range + b.range FROM range(10000000000) a, range(10000000000) b"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("statement", [ENDLESS, ROWS])
def test_a_signal_ends_a_statement(build: Path, statement: str, number: signal.Signals) -> None:
    command = [sys.executable, "-c", ENTRY, "sql", "--dbdir", str(build), statement]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        at_work = Path(f"/proc/{child.pid}/task")  # DuckDB's threads have begun
        trying.until(lambda: len(list(at_work.iterdir())) > 1)
        child.send_signal(number)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert said in ("", "cas: interrupted\n")


def test_the_end_frees_what_duckdb_would_report(build: Path) -> None:
    program = ENTRY.replace("sys.exit(", "status = (") + "\nassert gc.get_freeze_count() == 0"
    done = subprocess.run(
        [sys.executable, "-c", program, "sql", "--dbdir", str(build), "SELECT 1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("1\n1\n", "")


@pytest.mark.parametrize("missing", ["duckdb", "pyarrow"])
def test_without_the_libraries_it_says_what_to_install(
    image: Image, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    real = builtins.__import__

    def imported(name: str, *args: Any, **more: Any) -> Any:
        if name.partition(".")[0] == missing:
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", imported)
    with pytest.raises(EtraceError, match=f"needs {missing}") as caught:
        sql.ask(image, "SELECT 1")
    assert caught.value.hint.endswith("/bin/python -m pip install duckdb pyarrow")


def test_the_command_prints_cells_csv_and_json(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sql", "--dbdir", str(build), "SELECT 1 AS a, 'x\ty' AS b, NULL AS c, [1] AS d"]
    assert cas(words) == 0
    assert capsys.readouterr().out == "a\tb\tc\td\n1\tx\\ty\t\t[1]\n"
    assert cas([*words, "--csv"]) == 0
    assert capsys.readouterr().out == "a,b,c,d\n1,x\ty,,[1]\n"
    assert cas([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"a": 1, "b": "x\ty", "c": None, "d": [1]}]


def test_csv_has_no_formulas(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statement = "SELECT '=1+1' AS a, '-O2' AS b, -5 AS c, '-5' AS d, '@x' AS \"+e\""
    assert cas(["sql", "--dbdir", str(build), statement, "--csv"]) == 0
    assert capsys.readouterr().out == "a,b,c,d,'+e\n'=1+1,'-O2,-5,-5,'@x\n"
    assert cas(["sql", "--dbdir", str(build), statement]) == 0
    assert capsys.readouterr().out == "a\tb\tc\td\t+e\n=1+1\t-O2\t-5\t-5\t@x\n"


def test_the_command_lists_tables(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cas(["sql", "--dbdir", str(build), "--tables"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert "executions\targv\ttext[]" in listed
    assert "opens\tsize\tint64" in listed
    assert "compilation_definitions\tcompilation\tint32" in listed


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["SELECT nothing FROM opens"], 2, "cas sql --tables"),
        (["SELEKT"], 2, "syntax error"),
        (["SELECT 1; SELECT 2"], 2, "several statements at once"),
        ([], 2, "give a statement"),
        (["SELECT 1", "--tables"], 2, "give a statement"),
    ],
)
def test_wrong_use_is_reported(
    build: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, message: str
) -> None:
    assert cas(["sql", "--dbdir", str(build), *words]) == status
    said = capsys.readouterr()
    assert (said.out, message in said.err) == ("", True)


def test_a_type_that_python_lacks_a_package_for_is_reported(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pytz", "zoneinfo"):  # of DuckDB 1 and 2
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EtraceError, match=r"pytz|zoneinfo"):
        answer(image, "SELECT now()")


# ---- files of the user ----

FILE_STATEMENTS = (
    "SELECT * FROM read_text('{file}')",
    "COPY opens TO '{file}.csv'",
    "ATTACH '{file}.db' AS other",
    "SELECT * FROM glob('{file}*')",
    "EXPORT DATABASE '{file}.d'",
    "INSTALL httpfs",
)


@pytest.mark.parametrize("statement", FILE_STATEMENTS)
def test_a_statement_reads_and_writes_no_files(
    image: Image, tmp_path: Path, statement: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with pytest.raises(EtraceError, match=r"Permission Error") as caught:
        answer(image, statement.format(file=secret))
    assert "--allow-files" in caught.value.hint
    assert list(tmp_path.iterdir()) == [secret]


@pytest.mark.parametrize("setting", ["enable_external_access", "lock_configuration"])
def test_a_statement_cannot_allow_itself_files(image: Image, setting: str) -> None:
    for word in (f"SET {setting} = {setting[0] == 'e'}", f"RESET {setting}"):
        with pytest.raises(EtraceError, match="Cannot change configuration"):
            answer(image, word)


def test_variables_of_the_program_are_no_tables(image: Image) -> None:
    frames = answer(image, "SELECT 1")
    assert frames
    with pytest.raises(EtraceError, match="Table with name frames does not exist"):
        sql.ask(image, "SELECT * FROM frames", allow_files=True)


def test_an_option_lets_a_statement_read_files(
    build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("n\n7\n")
    words = ["sql", "--dbdir", str(build), f"SELECT n FROM '{tmp_path}/a.csv'"]
    assert cas(words) == 2
    capsys.readouterr()
    assert cas([*words, "--allow-files"]) == 0
    assert capsys.readouterr().out == "n\n7\n"


# ---- terminals ----

PROGRAM = (sys.executable, "-c", "from etrace.cli.main import cas; raise SystemExit(cas())")
HOSTILE = "a\x1b[31m\x9b2J\u202eb\x7f"
SHOWN = "a\\x1b[31m\\x9b2J\\x202eb\\x7f"
AS_PYTHON = SHOWN.replace("x202e", "u202e")
IN_JSON = "a\\u001b[31m\\u009b2J\\u202eb\\u007f"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database with a path that would do something to a terminal."""
    directory = tmp_path_factory.mktemp("hostile")
    opened = [{"p": HOSTILE, "m": 0}]
    (directory / ".nfsdb.json").write_text(json.dumps([{"p": 1, "x": 1, "o": opened}]))
    return directory


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((), f'path\tl\n{SHOWN}\t["{IN_JSON}"]\n'),
        (("--csv",), f"path,l\n{SHOWN},['{AS_PYTHON}']\n"),
        (("--json",), f'[\n{{"path": "{IN_JSON}", "l": ["{IN_JSON}"]}}\n]\n'),
    ],
)
def test_a_terminal_shows_what_would_change_it(
    hostile: Path, options: tuple[str, ...], wanted: str
) -> None:
    words = ["sql", "--dbdir", str(hostile), "SELECT path, [path] AS l FROM opens", *options]
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    with Terminal([*PROGRAM, *words], hostile, env) as terminal:
        terminal.wait_for(re.escape(wanted), seconds=60)
        assert terminal.log == wanted


def test_a_file_has_names_as_they_are(hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sql", "--dbdir", str(hostile), "SELECT path FROM opens"]
    assert cas(words) == 0
    assert capsys.readouterr().out == f"path\n{HOSTILE}\n"
    assert cas([*words, "--csv"]) == 0
    assert capsys.readouterr().out == f"path\n{HOSTILE}\n"
    assert cas([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"path": HOSTILE}]
