# SPDX-License-Identifier: Apache-2.0
"""Files asked for by names that lead through symbolic links, from several directories."""

from __future__ import annotations

from pathlib import Path

import pytest
from databases import capture_database
from libetrace.depend import configuration as config

from etrace.cli.cas import program
from etrace.postprocess.run import postprocess

SCRIPT = """\
gcc -I. -Iinc main.c -o prog; cp real/h.h sub/copy.h; ln -s real/late.h late.h
gcc -I. -c late.c; gcc late.o -shared -o liblate.so
(cd sub; gcc -I../inc -c ../other.c -o ../other.o; cat ../inc/../beside.h > ../out)
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a source root with links, and the database of its build in it."""
    work = tmp_path_factory.mktemp("links") / "prog"  # of the name of what it makes
    for name in ("real/deep", "sub"):
        (work / name).mkdir(parents=True)
    texts = {
        "real/h.h": "#define H 0\n", "real/deep/d.h": "#define D 0\n", "real/late.h": "\n",
        "real/a.c": '#include "api.hpp"\n#include "d.h"\nint main(void) { return H + D; }\n',
        "late.c": '#include "late.h"\nint late;\n', "other.c": '#include "d.h"\nint o = D;\n',
        "real/beside.h": "\n", "beside.h": "\n",
    }  # fmt: skip
    for name, text in texts.items():
        (work / name).write_text(text)
    links = {"api.hpp": "real/h.h", "inc": "real/deep", "main.c": "real/a.c"}
    for name, target in links.items():
        (work / name).symlink_to(target)
    image = capture_database(work, ["/bin/sh", "-ec", SCRIPT], work)
    postprocess(image, config.load(work), ("linked", "compilations"))
    return work


def answer(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[set[str], str]:
    """Return the lines that a query prints, and what it writes on standard error."""
    program._print_remark.cache_clear()
    assert program.main(list(words)) == 0
    out, err = capfd.readouterr()
    return set(out.splitlines()), err


@pytest.mark.parametrize(
    ("name", "leads_to"),
    [
        ("api.hpp", "real/h.h"),
        ("./api.hpp", "real/h.h"),
        ("real/../api.hpp", "real/h.h"),
        ("inc/d.h", "real/deep/d.h"),
        ("sub/../inc/d.h", "real/deep/d.h"),
        ("inc/../h.h", "real/h.h"),
        ("real/h.h", None),
        ("real/./deep/../h.h", None),
    ],
)
@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_name_through_links_has_the_answer_of_its_file(
    work: Path, name: str, leads_to: str | None, *, is_absolute: bool,
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(work)
    asked = f"{work}/{name}" if is_absolute else name
    found, said = answer(capfd, "rdeps", asked)
    assert f"{work}/prog" in found
    # links before `..` are resolved before the name is looked for
    is_led = leads_to is not None and (".." not in name or "api" in name)
    assert said == (f"cas: {asked} leads to {work}/{leads_to}\n" if is_led else "")
    for words in (["commands", "--path", asked], ["deps", "--rdm", asked]):
        assert answer(capfd, *words)[0]
    chain, _ = answer(capfd, "why", "prog", asked)
    assert any(line.endswith((f"{work}/{leads_to}", "real/h.h")) for line in chain)


def test_a_compilation_is_found_by_the_link_that_was_compiled(
    work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work)
    for name in ("main.c", f"{work}/main.c", "./main.c", "real/a.c"):
        found, _ = answer(capfd, "compilation-info-for", name)
        assert f"{work}/real/a.c (c)" in found


def test_a_link_that_the_build_made_leads_on(
    work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work)
    assert f"{work}/liblate.so" in answer(capfd, "rdeps", "late.h")[0]
    chain, _ = answer(capfd, "why", "liblate.so", "late.h")
    assert any(line.endswith(f"{work}/real/late.h") for line in chain)


def test_dots_after_a_link_leave_the_directory_that_it_leads_to(
    work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work)
    found, _ = answer(capfd, "rdeps", "--all", "inc/../beside.h")
    assert found == {f"{work}/out"}
    found, _ = answer(capfd, "rdeps", "--all", "real/beside.h")
    assert found == {f"{work}/out"}


def test_links_that_are_gone_are_known_from_the_trace(
    work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work)
    for name in ("api.hpp", "inc"):
        Path(name).rename(f"{name}.kept")
    try:
        for name in ("api.hpp", "inc/d.h"):
            assert f"{work}/prog" in answer(capfd, "rdeps", name)[0]
    finally:
        for name in ("api.hpp", "inc"):
            Path(f"{name}.kept").rename(name)


def test_a_directory_gives_way_to_the_file_of_its_name(
    work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work.parent)
    found, _ = answer(capfd, "deps", "prog", "--db", str(work))
    assert f"{work}/real/a.c" in found
