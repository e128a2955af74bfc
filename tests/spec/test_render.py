# SPDX-License-Identifier: Apache-2.0
"""etrace/render.py: rendered files are committed as they render, errors are SpecErrors."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from etrace import render
from etrace.errors import SpecError

TOP = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of what is rendered and what it is rendered from."""
    for name in render.OUTPUTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, tmp_path / name)
    shutil.copytree(TOP / "etrace/spec/templates", tmp_path / "etrace/spec/templates")
    return tmp_path


def test_the_committed_files_are_what_they_render_to() -> None:
    assert render.check(render.outputs(TOP)) == []


def test_check_prints_the_difference_and_fails(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = tree / "kmod/include/etrace/events.h"
    header.write_text(header.read_text().replace("ETRACE_PART_BYTES 900", "ETRACE_PART_BYTES 901"))
    assert render.main(["--check", "--top", str(tree)]) == 1
    printed = capsys.readouterr().out
    assert "-#define ETRACE_PART_BYTES 901" in printed
    assert "+#define ETRACE_PART_BYTES 900" in printed
    assert header.read_text().count("ETRACE_PART_BYTES 901") == 1


def test_check_reports_a_missing_file(tree: Path) -> None:
    (tree / "docs/format.md").unlink()
    assert render.main(["--check", "--top", str(tree)]) == 1


def test_without_check_files_are_written_again(tree: Path) -> None:
    committed = {name: (tree / name).read_bytes() for name in render.OUTPUTS}
    for name in render.OUTPUTS:
        (tree / name).write_text("stale")
    assert render.main(["--top", str(tree)]) == 0
    assert {name: (tree / name).read_bytes() for name in render.OUTPUTS} == committed
    assert render.main(["--check", "--top", str(tree)]) == 0


def test_a_file_that_is_right_is_not_written(tree: Path) -> None:
    render.main(["--top", str(tree)])
    written = {tree / path: (tree / path).stat().st_ino for path in render.OUTPUTS}
    (tree / "docs/format.md").write_text("old")
    assert render.main(["--top", str(tree)]) == 0
    assert {path: path.stat().st_ino for path in written if path.name != "format.md"} == {
        path: inode for path, inode in written.items() if path.name != "format.md"
    }
    assert (tree / "docs/format.md").read_text() != "old"


def test_an_undefined_name_is_a_spec_error_that_names_the_template(tmp_path: Path) -> None:
    template = tmp_path / "page.j2"
    template.write_text("{{ nowhere }}\n")
    with pytest.raises(SpecError) as caught:
        render.render(template, {})
    assert str(template) in caught.value.message
    assert "nowhere" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("text", ["{% if %}", "{{ spec.missing }}", "{% include 'absent.j2' %}"])
def test_a_wrong_template_is_a_spec_error(tmp_path: Path, text: str) -> None:
    template = tmp_path / "page.j2"
    template.write_text(text)
    with pytest.raises(SpecError):
        render.render(template, {"spec": object()})


def test_a_missing_template_is_a_spec_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        render.render(tmp_path / "absent.j2", {})


def test_text_is_kept_as_it_is(tmp_path: Path) -> None:
    template = tmp_path / "page.j2"
    template.write_text("<{{ name }}>\n{% if yes %}\nshown\n{% endif %}\n\n")
    assert render.render(template, {"name": "a&b", "yes": True}) == "<a&b>\nshown\n\n"


def test_errors_of_the_command_go_to_stderr(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "etrace/spec/templates/events.h.j2").write_text("{{ nowhere }}")
    assert render.main(["--check", "--top", str(tree)]) == 1
    assert "events.h.j2" in capsys.readouterr().err


def test_a_failed_write_leaves_the_old_file_and_no_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    path.write_text("old")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        render.write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
