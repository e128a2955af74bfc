# SPDX-License-Identifier: Apache-2.0
"""The page as a file: whole, with a policy that fits it, and no text of the trace as markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
import zlib
from pathlib import Path
from typing import Any

import pytest
from builders import TraceBuilder
from databases import database_of

from etrace.cli.main import etrace
from etrace.report.pack import Pack, shown
from etrace.report.page import pack, render
from etrace.report.uses import varints

WEB = Path(__file__).resolve().parents[2] / "etrace/report/web"
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>.c"


def header_of(page: str) -> dict[str, Any]:
    block = re.search(r'<script type="application/octet-stream" id="data">([^<]*)<', page)
    assert block is not None
    data = zlib.decompress(base64.b64decode(block[1]))
    found: dict[str, Any] = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
    return found


def test_the_policy_allows_the_script_and_style_of_the_page_and_nothing_else(
    database: Path,
) -> None:
    from etrace.nfsdb.store import open_database

    page = render(open_database(database))
    for tag, kind in (("script", ' type="module"'), ("style", "")):
        (content,) = re.findall(rf"<{tag}{kind}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)=["'](?!#)""", page)


def test_names_of_files_and_arguments_are_no_markup(tmp_path: Path) -> None:
    trace = TraceBuilder(cwd="/src")
    trace.exec(1 << 22 | 1, "/usr/bin/cc", ["cc", EVIL, "@script@", "@data@"], cwd=f"/{EVIL}")
    trace.open(1 << 22 | 1, f"/src/{EVIL}").exit(1 << 22 | 1, 1)
    page = render(database_of(tmp_path, trace.trace()))
    assert "<img" not in page
    assert page.count("<script") == 2
    assert page.count("@data@") == 1  # in the plain table: a mark in a value is not filled


def test_texts_lose_what_would_hide_or_turn_them() -> None:
    assert shown(b"a\x1b[31m\nb") == r"a\x1b[31m\nb"
    assert shown("a\u202eb".encode()) == r"a\u202eb"
    assert shown(b"\xff") == r"\xff"
    assert shown("\u00e9".encode()) == "\u00e9"


def test_equal_texts_are_stored_once() -> None:
    pack = Pack()
    assert [pack.text(text) for text in (b"a", b"b", b"a")] == [0, 1, 0]


def test_lists_are_differences_of_seven_bits_a_byte() -> None:
    start, data = varints([[1, 3], [], [300, 301]])
    assert list(start) == [0, 2, 2, 5]
    assert data == bytes((1, 2, 300 & 0x7F | 0x80, 300 >> 7, 1))


def test_the_command_writes_a_page_that_only_its_owner_reads(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (database / ".nfsdb.img").chmod(0o600)
    page = tmp_path / "build.html"
    assert etrace(["report", "-o", str(page), str(database)]) == 0
    assert str(page) in capsys.readouterr().err
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    meta = header_of(page.read_text())["meta"]
    assert [module["path"] for module in meta["modules"]] == ["/src/libutil.a", "/src/hello"]


def test_a_file_that_is_gone_has_no_size(tmp_path: Path) -> None:
    cc, made = 1 << 22 | 1, tmp_path / "made.o"
    made.write_bytes(bytes(1_900_000))
    trace = TraceBuilder(cwd=str(tmp_path)).exec(cc, "/usr/bin/cc", ["cc"])
    trace.use(cc, str(made), flags=1).use(cc, str(tmp_path / "gone.s"), flags=1)
    packed = pack(database_of(tmp_path, trace.exit(cc).trace()))
    texts = packed.texts()
    sizes = zip(packed.column("file.path"), packed.column("file.size"), strict=True)
    names = {Path(texts[path]).name: n_bytes for path, n_bytes in sizes}
    assert names == {"made.o": 1_900_000, "gone.s": -1}


def luminance(colour: str) -> float:
    digits = colour if len(colour) == 6 else "".join(c * 2 for c in colour)
    parts = (int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4))
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    """Return the contrast of two colours by WCAG 2.1."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_have_a_contrast_of_four_and_a_half(scheme: int) -> None:
    style = (WEB / "style.css").read_text()
    block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): #(\w+)", block))
    for text in ("text", "soft", "accent"):
        for back in ("back", "raised"):
            assert contrast(colours[text], colours[back]) >= 4.5, (text, back)
    for text in ("text", "bad", "accent"):
        assert contrast(colours[text], colours["bad-back"]) >= 4.5, text


def test_texts_on_bars_have_a_contrast_of_four_and_a_half() -> None:
    script = (WEB / "show.js").read_text()
    (ink,) = re.findall(r'INK = "#(\w+)"', script)
    (palette,) = re.findall(r"PALETTE = \[(.*?)\]", script)
    bars = [*re.findall(r"#(\w+)", palette), *re.findall(r'(?:OTHER|FAILED) = "#(\w+)"', script)]
    assert len(bars) == 10
    assert all(contrast(ink, bar) >= 4.5 for bar in bars)
