# SPDX-License-Identifier: Apache-2.0
"""Nothing that must stay on the machine enters a fleet, wherever the build has it."""

from __future__ import annotations

import json
from pathlib import Path

import fleets
import pyarrow.parquet as pq
import pytest
from builders import TraceBuilder
from databases import database_of
from fleets import OTHER, PERSON, SECRETS

from etrace.errors import EtraceError, UsageError
from etrace.fleet.redaction import MAX_HIDDEN, Redactor
from etrace.nfsdb.store import open_database
from etrace.query.rows.labels import Labels
from etrace.redaction.commands import secret_values


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fleets.traced(tmp_path_factory.mktemp("redaction"))


@pytest.fixture(scope="module")
def written(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fleet with all that a user can ask for, labels that hold secrets included."""
    place = tmp_path_factory.mktemp("fleet") / "fleet"
    fleets.run(
        [str(fleets.BIN / "etrace"), "fleet", "add", ".", "--fleet", str(place), "--create",
         "--build-id", "1", "--environment", "*", "--strict", "--label", f"by={PERSON}",
         "--label", f"url=https://me:{SECRETS[2]}@example.org", "--label", f"log=~ {SECRETS[0]}",
         "--label", f"home={fleets.home_of(tree.parents[2])}/x"],
        cwd=tree,
    )  # fmt: skip
    return place


def texts(place: Path) -> str:
    """Return all that a fleet holds: names, values of every column, and other files."""
    parts = []
    for path in sorted(place.rglob("*")):
        parts.append(str(path.relative_to(place)))
        if path.suffix == ".parquet":
            parts.append(json.dumps(pq.read_table(path).to_pylist(), default=str))
        elif path.is_file():
            parts.append(path.read_text())
    return "\n".join(parts)


def test_a_planted_secret_is_nowhere_in_a_fleet(written: Path) -> None:
    found = texts(written)
    assert [secret for secret in SECRETS if secret in found] == []
    raw = b"".join(path.read_bytes() for path in written.rglob("*") if path.is_file())
    assert [secret for secret in SECRETS if secret.encode() in raw] == []
    assert "[hidden]" in found


def test_the_names_of_people_and_their_homes_are_nowhere(written: Path, tree: Path) -> None:
    found = texts(written)
    assert PERSON not in found
    assert OTHER not in found
    assert str(fleets.home_of(tree.parents[2])) not in found
    assert str(tree) not in found
    assert "by-[user].txt" in found


def test_what_is_harmless_stays(written: Path) -> None:
    found = texts(written)
    assert "gcc -o hello main.o other.o" in found
    assert "gcc -c '$ROOT/other.c' -o other.o" in found
    assert '"VISIBLE", "seen"' in found
    assert '"path": "main.c"' in found


def test_no_variable_is_written_by_default(tree: Path, tmp_path: Path) -> None:
    image = open_database(tree)
    dataset = fleets.fleet_of(tmp_path / "f", image, fleets.about("1"))
    assert fleets.ask(dataset, "SELECT variables FROM builds") == [({},)]
    assert "seen" not in texts(tmp_path / "f")


def test_rules_and_names_of_the_user_hide_more(tree: Path) -> None:
    redactor = Redactor(open_database(tree), ["other\\.[co]"], ["main"])
    assert redactor.text("gcc other.c main.c") == "gcc [hidden] [user].c"


@pytest.mark.parametrize("rule", ["(", "x*"])
def test_a_rule_that_is_wrong_is_refused(rule: str, tree: Path) -> None:
    with pytest.raises(UsageError):
        Redactor(open_database(tree), [rule])


def test_a_label_is_no_place_for_a_secret(tree: Path) -> None:
    with pytest.raises(UsageError, match="a fleet holds no secrets"):
        Redactor(open_database(tree)).label("api_token", "x")


def test_an_id_is_no_place_for_a_secret(tree: Path, tmp_path: Path) -> None:
    _, said = fleets.run(
        [str(fleets.BIN / "etrace"), "fleet", "add", "--fleet", str(tmp_path), "--build-id",
         SECRETS[0]],
        cwd=tree, status=2,
    )  # fmt: skip
    assert "--build-id holds a secret" in said


def test_paths_are_relative_and_homes_short(tmp_path: Path) -> None:
    upid = 1 << 22 | 1
    trace = TraceBuilder(cwd="/home/eve/x").exec(upid, "/bin/a", ["a"]).exit(upid)
    redactor = Redactor(database_of(tmp_path, trace.trace()))
    assert redactor.path(b"/home/eve/x/a.c") == "a.c"
    assert redactor.path(b"/home/eve/x") == "."
    assert redactor.path(b"/home/eve/.ccache/1") == "~/.ccache/1"
    assert redactor.path(b"/home/eve/xy") == "~/xy"
    assert redactor.path(b"/root/.cargo") == "~/.cargo"
    assert redactor.path(b"/srv/rootfs/a-eve.c") == "/srv/rootfs/a-[user].c"
    assert redactor.path(b"/usr/lib/steve.so") == "/usr/lib/steve.so"
    assert redactor.path(b"/x/\xff") == "/x/\\xff"


@pytest.mark.parametrize("script", [
    "true --password correcthorse && true",  # a plain word, hidden by its place alone
    "true && true && true && --token zZ9-secret-of-many-letters",
    "true; true; true; curl https://me:pw-secret-77@h/",
    "true; true; true; true; true; cat /x/mallory.quentin/y",
])  # fmt: skip
@pytest.mark.parametrize("pad", range(8))
def test_no_part_of_a_secret_is_left_in_the_name_of_a_step(
    script: str, pad: int, tmp_path: Path
) -> None:
    upid, text = 1 << 22 | 1, "x" * pad + script
    t = TraceBuilder(cwd="/src").exec(upid, "/bin/sh", ["sh", "-c", text])
    t.use(upid, "/home/mallory.quentin/a").exit(upid)
    image = database_of(tmp_path, t.trace())
    redactor = Redactor(image)
    row = image["executions"]["binary"].tolist().index(image.find_path(b"/bin/sh"))
    step = Labels(image, redactor.words).of(row)
    found = step + redactor.command([b"sh", b"-c", text.encode()])
    for secret in ("correcthorse", "zZ9-secret-of-many-letters", "pw-secret-77", "mallory.quentin"):
        for n in range(3, len(secret) + 1):
            assert secret[:n] not in found


def test_values_of_secrets_are_found_wherever_rules_hide_them() -> None:
    words = ["x", "--password", "aB3$xyz", "-DTOKEN=zzz999", "https://u:pw1234@h/", "sh -c true",
             "true --token inner-7 --auth other-8"]  # fmt: skip
    assert set(secret_values(words)) >= {"aB3$xyz", "zzz999", "pw1234", "inner-7", "other-8"}


def test_many_secrets_in_one_word_take_no_long_time() -> None:
    """Each was a choice of its own once: 2 to the power of their number."""
    tokens = ["ghp_" + f"{n:036d}" for n in range(2000)]
    assert set(secret_values(["x/" + ":".join(tokens)])) >= set(tokens)


def test_more_secrets_than_are_looked_for_are_refused(tmp_path: Path) -> None:
    upid = 1 << 22 | 1
    trace = TraceBuilder(cwd="/src")
    for n in range(MAX_HIDDEN + 1):
        trace.exec(upid, "/bin/true", ["true", "--password", f"secret-{n}-x"])
    image = database_of(tmp_path, trace.exit(upid).trace())
    with pytest.raises(EtraceError, match="shows 2001 secrets"):
        Redactor(image)


@pytest.mark.parametrize("word", [
    "-I/home/bobby/inc", "-L/home/bobby/lib", "-isystem/home/bobby/i", "-iquote/Users/bobby/i",
    "sh -c 'gcc -I/home/bobby/inc'", "--sysroot=/home/bobby", "-Wl,-rpath,/home/bobby/l",
])  # fmt: skip
def test_a_home_right_after_an_option_is_hidden(word: str, tmp_path: Path) -> None:
    upid = 1 << 22 | 1
    trace = TraceBuilder(cwd="/src").exec(upid, "/bin/a", ["a"]).exit(upid)
    redactor = Redactor(database_of(tmp_path, trace.trace()))
    assert "bobby" not in redactor.command([b"gcc", word.encode()])
    assert redactor.path(b"/x/home/page.c") == "/x/home/page.c"
