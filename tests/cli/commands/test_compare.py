# SPDX-License-Identifier: Apache-2.0
"""`etrace compare`: what it prints, and its exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from backends import capture, need_tool
from report.two_builds import Recipe

from etrace.cli.main import etrace

MARKUP = "`|*<b>@x"


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of three databases: before, after and again, which is before once more."""
    top = tmp_path_factory.mktemp("builds")
    recipes = {
        "before": Recipe(top / "a"),
        "again": Recipe(top / "c", sources={"a": 104, "b": 198}),
        "after": Recipe(top / "b", sources={"a": 300, "b": 200, MARKUP: 30}, failing=("b",)),
    }
    for name, recipe in recipes.items():
        recipe.root.mkdir()
        recipe.write(top / name)
    return top


def words(builds: Path, *more: str) -> list[str]:
    return ["compare", str(builds / "before"), str(builds / "after"), "-q", *more]


def test_text_has_a_table_for_what_differs(
    builds: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(builds)
    assert etrace(["compare", "before", "after"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("A  before\nB  after\n")
    for line in (
        r"CPU time +0\.360 s +0\.540 s +\+0\.180 s \(\+50\.0 %\)",
        r"failed commands +0 +2 +\+2 \(was 0\)",
        r"cc1 b\.c +1  made the build fail",
        r"\n  cc1 b\.c wrote last:\n    b\.o:1: error: ``` <b>\n",
        r"prog +1\.0 kB -> - +5 -> - +1 -> -",
        r"cc1 +2 -> 3 +0\.300 s +0\.530 s +\+0\.230 s \(\+76\.7 %\)",
        r"cc1 a\.c +0\.100 s +0\.300 s +\+0\.200 s \(\+200\.0 %\)",
    ):
        assert re.search(line, text), line
    assert "may be noise (--runs)" in text


def test_with_runs_only_what_is_beyond_the_noise_is_slower(
    builds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etrace([*words(builds), "--runs", str(builds / "again")]) == 0
    text = capsys.readouterr().out
    assert "(mean of 2 runs)" in text
    slower = text.partition("Slower commands\n")[2].partition("\n\n")[0]
    assert re.search(r"cc1 a\.c +0\.102 s +0\.300 s +\+0\.198 s \(\+194\.1 %\) +±", slower)
    assert "cc1 b.c" not in slower
    assert "Faster commands" not in text


def test_markdown_shows_names_unchanged(builds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(words(builds, "--format", "markdown", "--fail-if", "failed>0")) == 1
    text = capsys.readouterr().out
    assert "- **exceeded**: `failed>0: exceeded, 0 -> 2 (was 0)`\n" in text
    assert "\n| `cc1` | 2 -> 3 | 0.300 s | 0.530 s | +0.230 s (+76.7 %) |\n" in text
    assert "\n````\ncc1 b.c wrote last:\n  b.o:1: error: ``` <b>\n````\n" in text
    # GitHub takes `\|` for `|` in code, too, if it is in a table
    assert "\n| `` cc1 `\\|*<b>@x.c `` | 1 | 0.030 s |\n" in text


def test_json_has_all_of_it(builds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = str(builds / "again")
    assert etrace(words(builds, "--json", "--runs", again, "--fail-if", "failed<=+0")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["figures"]["failed"] == {"before": 0, "after": 2, "noise": None}
    assert found["figures"]["cpu"]["after_ns"] == "540000000"
    assert int(found["figures"]["cpu"]["noise_ns"]) > 0
    assert found["n_runs"] == [2, 1]
    assert [each["name"] for each in found["failed_newly"]] == ["cc1 b.c", "make"]
    assert found["failed_newly"][0]["last_lines"] == ["b.o:1: error: ``` <b>"]
    assert found["failed_newly"][0]["command"][-2:] == ["-o", "b.o"]
    assert found["no_longer_built"] == ["b.o", "prog"]
    assert [each["path"] for each in found["modules"]] == ["prog"]
    assert {each["name"]: each["after_ns"] for each in found["commands"]}["cc1 a.c"] == "300000000"
    assert [each["name"] for each in found["ran_no_longer"]] == ["ld prog"]
    assert found["limits"] == [{"limit": "failed<=+0", "is_exceeded": False, "is_noise": False}]


def test_exit_status_is_1_for_a_limit_and_2_for_an_error(
    builds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etrace(words(builds, "--fail-if", "cpu>+60%", "--fail-if", "failed>1")) == 1
    assert "cpu>+60%: not exceeded, 0.360 s -> 0.540 s (+50.0 %)" in capsys.readouterr().out
    assert etrace(words(builds, "--fail-if", "cpu>+60%")) == 0
    assert etrace(words(builds, "--fail-if", "cpu>60%")) == 2
    assert etrace(["compare", str(builds / "before"), str(tmp_path)]) == 2
    assert "no trace and no database" in capsys.readouterr().err


def test_a_run_that_is_compared_already_shows_no_noise(
    builds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, again = str(builds / "before"), str(builds / "again")
    for wrong in (["--runs", before], ["--runs", again, again]):
        assert etrace(words(builds, *wrong)) == 2
        assert "is a run that is compared already" in capsys.readouterr().err


MAKEFILE = """\
prog: main.o part.o; cc -o $@ main.o part.o
%.o: %.c; cc $(CFLAGS) -c $<
"""


def test_two_real_builds_in_two_directories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_tool("make", "make")
    for name in ("one", "two"):
        source = tmp_path / name / "src"
        source.mkdir(parents=True)
        (source / "Makefile").write_text(MAKEFILE)
        (source / "part.c").write_text("int part(void) { return 1; }\n")
        (source / "main.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "two/src/new.h").write_text("char text[5000] = {1};\n")
    main = '#include "new.h"\nint main(void) { return text[1]; }\n'
    (tmp_path / "two/src/main.c").write_text(main)
    for name, flag in (("one", "-O0"), ("two", "-O1")):
        source = tmp_path / name / "src"
        done = capture(["make", f"CFLAGS={flag}"], source, trace=source / ".nfsdb")
        assert done.status == 0
    places = [str(tmp_path / name / "src") for name in ("one", "two")]
    assert etrace(["compare", "-q", *places, "--json", "--fail-if", "commands>+0"]) == 0
    found = json.loads(capsys.readouterr().out)
    (module,) = found["modules"]
    assert module["path"] == "prog"
    assert module["size"]["after_bytes"] > module["size"]["before_bytes"] + 4000
    assert module["headers"]["after"] == module["headers"]["before"] + 1
    assert [each["path"] for each in found["headers"]] == ["new.h"]
    assert (found["ran_newly"], found["ran_no_longer"], found["failed_newly"]) == ([], [], [])
    assert (found["built_newly"], found["no_longer_built"]) == ([], [])
