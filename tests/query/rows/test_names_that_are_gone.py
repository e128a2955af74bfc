# SPDX-License-Identifier: Apache-2.0
"""Files that were opened by names that are gone: they are there by the names they resolve to."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import libetrace
import pytest
from databases import TRACE, capture_database
from libetrace.depend import configuration as config
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess
from etrace.query.rows.file_kinds import FileKind, FileKinds
from etrace.query.rows.temporary import Temporaries
from etrace.spec.database import NONE, file_type

SCRIPT = """\
mkdir gone; (cd gone; cat ../a.txt > ../by_dots; gcc -c ../a.c -o ../a.o); rmdir gone
cat ./gone/../a.txt 2> /dev/null || true
ln -s real linked; cat linked/h.h > by_linked_directory; echo x > linked/made; rm linked
ln -s b.txt link; cat link > by_link; rm link
ln -s made_by_link link; echo longer > link; rm link
mkdir other; ln c.txt other/hard; cat other/hard > by_hard; rm -r other
ln -s made_by_kept_link kept; echo 12345 > kept
echo x > removed; ln -s removed dangling; cat dangling > by_dangling; rm removed
"""
THERE = {"a.txt": 2, "a.c": 7, "real/h.h": 2, "real/made": 2, "b.txt": 2, "c.txt": 2}
MADE = {"a.o", "real/made", "made_by_link", "made_by_kept_link", "by_dots", "by_hard", "by_link"}
GONE = {"removed", "other/hard", "link", "linked"}


@pytest.fixture(scope="module", params=["trace", "json"])
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Image]:
    """Return the database of a trace, or the one that its JSON gives."""
    folder = tmp_path_factory.mktemp("names")
    work = folder / "work"
    (work / "real").mkdir(parents=True)
    (work / "a.c").write_text("int a;\n")
    for name in ("a.txt", "b.txt", "c.txt", "real/h.h"):
        (work / name).write_text("1\n")
    image = capture_database(folder, ["/bin/sh", "-ec", SCRIPT], work)
    if request.param == "json":
        (folder / f"{TRACE}.img").unlink()
        image = open_database(folder)
    postprocess(image, config.load(folder), ("linked", "compilations"))
    return work, open_database(folder)


def loaded(image: Image) -> libetrace.nfsdb:
    database = libetrace.nfsdb()
    database.load(image.path)
    return database


def row(built: tuple[Path, Image], name: str) -> int:
    work, image = built
    found = image.find_path(os.fsencode(work / name))
    assert found >= 0, name
    return found


@pytest.mark.parametrize("name", sorted(MADE | THERE.keys()))
def test_what_is_there_is_never_called_gone(built: tuple[Path, Image], name: str) -> None:
    work, image = built
    path, status = row(built, name), (work / name).lstat()
    temporaries = Temporaries(image)
    assert not temporaries.is_temporary(path)
    assert file_type(temporaries.mode_of(path)) == stat.S_IFMT(status.st_mode)
    assert temporaries.size_of(path) == status.st_size
    assert FileKinds(image).of(path) is not FileKind.TEMPORARY


@pytest.mark.parametrize("name", sorted(GONE))
def test_what_is_gone_is_called_gone(built: tuple[Path, Image], name: str) -> None:
    _, image = built
    path, temporaries = row(built, name), Temporaries(image)
    assert (temporaries.mode_of(path), temporaries.size_of(path)) == (0, NONE)
    assert temporaries.is_temporary(path)


def test_an_open_by_a_name_that_is_gone_says_that_its_file_exists(
    built: tuple[Path, Image],
) -> None:
    work, image = built
    found = {
        each.original_path: (each.path, each.exists(), each.is_symlink(), each.size)
        for execution in loaded(image)
        for each in execution.opens
        if each.path_modified() and each.original_path.startswith(f"{work}/")
    }
    assert found[f"{work}/gone/../a.txt"] == (f"{work}/a.txt", True, False, 2)
    assert found[f"{work}/linked/h.h"] == (f"{work}/real/h.h", True, False, 2)
    assert found[f"{work}/kept"][:3] == (f"{work}/made_by_kept_link", True, True)
    assert found[f"{work}/dangling"][:3] == (f"{work}/removed", True, True)


def test_the_text_has_the_state_of_files_that_were_opened_by_other_names_only(
    built: tuple[Path, Image],
) -> None:
    work, image = built
    text = json.loads((image.path.parent / f"{TRACE}.json").read_bytes())
    facts = {
        each["o"]: (each.get("f"), each.get("n"))
        for entry in text
        for each in entry["o"]
        if each.get("o", "").startswith(f"{work}/")
    }
    assert facts[f"{work}/kept"] == (0x60, 6)
    assert facts[f"{work}/gone/../a.txt"] == (0x60, 2)
    assert facts[f"{work}/dangling"] == (None, None)  # gone
    assert [entry.json()["o"] for entry in loaded(image)] == [entry["o"] for entry in text]
