# SPDX-License-Identifier: Apache-2.0
"""Linked modules and their copies."""

from __future__ import annotations

import os
from pathlib import Path

import databases
import pytest
from databases import capture_database
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.cli.main import cas
from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database
from etrace.query.dependencies import rdeps, revmoddeps
from etrace.query.linked_modules import find_copies, linked_modules
from etrace.query.select.filters import parse_opens
from etrace.query.select.selection import Selection


def found(image: Image, given: Selection) -> list[tuple[bytes, str, list[int]]]:
    upid = image["executions"]["upid"]
    return [
        (image.path_string(m.path), m.kind_name, [upid[row] for row in m.executions])
        for m in linked_modules(image, given)
    ]


HELLO = (b"/src/hello", "executable", [databases.LD])
LIBUTIL = (b"/src/libutil.a", "archive", [databases.AR])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (Selection(), [HELLO, LIBUTIL]),
        (Selection(paths=[b"/src/hello"]), [HELLO]),
        (Selection(paths=[b"/src/main.c"]), []),
        (Selection(binaries=[b"/usr/bin/ar"]), [LIBUTIL]),
        (Selection(filters=parse_opens(["[class=linked_static]"])), [LIBUTIL]),
    ],
)
def test_modules(image: Image, given: Selection, wanted: list[object]) -> None:
    assert found(image, given) == wanted


def test_before_pp_there_are_none_to_be_asked_for(parsed: Image) -> None:
    with pytest.raises(EtraceError) as error:
        linked_modules(parsed)
    assert "no linked modules yet" in error.value.message
    assert error.value.hint == "make them: cas pp"


BUILD = """
set -e
echo 'int f(void) { return 1; }' > f.c
echo 'int f(void); int main(void) { return f(); }' > main.c
ln -s libf.so.1 libf.so
cc -c -fPIC f.c
cc -shared -o libf.so.1 f.o
cc -o prog main.c -L. -lf
mkdir out
install -m 755 prog out/installed
install -s -m 755 prog out/installed_stripped
cp prog out/copied
python3 -c 'import shutil; shutil.copy2("prog", "out/by_python")'
python3 - <<'END'
import shutil
shutil.copy("prog", "out/checked")
open("out/checked", "rb").close()
shutil.copy("main.c", "out/after_a_look.c")
open("out/checked", "rb").close()
END
strip -o out/stripped prog
objcopy --only-keep-debug prog out/prog.debug
ln prog out/linked
cp out/copied out/copied_again
cp libf.so.1 temporary
mv temporary out/renamed.so
cp main.c out/main.c
nm prog > out/symbols
tar cf out/all.tar prog libf.so.1
cp prog removed
rm removed
"""
OF_PROG = (
    "by_python", "checked", "copied", "copied_again", "installed", "installed_stripped", "linked",
    "prog.debug", "stripped",
)  # fmt: skip


MOVED = """
set -e
echo 'int main(void) { return 0; }' > main.c
cc -o build_prog main.c
python3 - <<'END'
import os, shutil
with open("build_prog", "rb") as module:
    open("probe", "w").close()  # as tempfile tries a directory
    os.remove("probe")
    shutil.copyfileobj(module, open("installed", "wb"))
open("between", "w").close()
shutil.copy("build_prog", "again")
open("installed", "rb").close()
END
rm build_prog
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Image:
    tree, folder = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("database")
    capture_database(folder, ["sh", "-c", BUILD], tree)
    assert cas(["--dbdir", str(folder), "pp"]) == 0
    return open_database(folder)


def tree_of(image: Image) -> Path:
    return Path(image.attributes["source_root"])


def below(image: Image, rows: list[int]) -> list[str]:
    """Return paths below the tree."""
    return [os.path.relpath(os.fsdecode(image.path_string(row)), tree_of(image)) for row in rows]


def test_what_real_tools_copy_is_found_and_nothing_else(built: Image) -> None:
    found = find_copies(built)
    modules = below(built, [copy.module for copy in found.values()])
    assert dict(zip(below(built, list(found)), modules, strict=True)) == {
        **{f"out/{name}": "prog" for name in OF_PROG},
        "out/renamed.so": "libf.so.1",
    }


def test_probes_are_no_copies_when_the_modules_were_moved_away(tmp_path: Path) -> None:
    tree, folder = tmp_path / "tree", tmp_path / "database"
    tree.mkdir()
    folder.mkdir()
    capture_database(folder, ["sh", "-c", MOVED], tree)
    assert cas(["--dbdir", str(folder), "pp"]) == 0
    image = open_database(folder)
    assert below(image, list(find_copies(image))) == ["again", "installed"]


def test_copies_are_listed_with_the_modules_when_asked_for(built: Image) -> None:
    assert below(built, [m.path for m in linked_modules(built)]) == ["libf.so.1", "prog"]
    listed = linked_modules(built, with_copies=True)
    copies = sorted([*(f"out/{name}" for name in OF_PROG), "out/renamed.so"])
    assert below(built, [m.path for m in listed]) == ["libf.so.1", *copies, "prog"]
    (installed,) = (m for m in listed if below(built, [m.path]) == ["out/installed"])
    assert (installed.kind_name, below(built, [installed.copy_of or 0])) == ("executable", ["prog"])


def test_copies_depend_on_what_their_module_was_made_of(built: Image) -> None:
    d = Dependencies(built)
    source = os.fsencode(tree_of(built) / "main.c")
    assert below(built, rdeps(d, [source], Rules())) == ["prog"]
    with_copies = rdeps(d, [source], Rules(), with_copies=True)
    assert below(built, with_copies) == [*(f"out/{name}" for name in OF_PROG), "prog"]


def test_a_link_to_a_module_may_be_asked_for_as_one(built: Image) -> None:
    d, tree = Dependencies(built), tree_of(built)
    found = revmoddeps(d, [os.fsencode(tree / "libf.so")], Rules())
    assert below(built, found) == ["prog"]
    with pytest.raises(EtraceError, match=r"main\.c is not a linked module"):
        revmoddeps(d, [os.fsencode(tree / "main.c")], Rules())
