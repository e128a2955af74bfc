# SPDX-License-Identifier: Apache-2.0
"""The page of a flame graph."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from browser import browser
from xray_samples import MT, MT_MAP, run

import etrace
from etrace.cli.serve.app import FILES

LOADED = """document.readyState === "complete" ? 0
    : new Promise(done => addEventListener("load", done))"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A flame graph whose title would be a script."""
    out = tmp_path / "flame.html"
    title = "</script><script>document.title='owned'</script>"
    assert run("flame", "-m", MT_MAP, MT, "--title", title, "-o", str(out)) == 0
    return out


def test_a_flame_graph_is_one_file_that_needs_no_network(tmp_path: Path) -> None:
    out = tmp_path / "flame.html"
    assert run("flame", "-m", MT_MAP, MT, "-o", str(out)) == 0
    page = out.read_text()
    assert "http:" not in page
    assert "https:" not in page
    data = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    document = json.loads(data)
    total = sum(n[3] for n in document["nodes"] if n[0] < 0)
    assert sum(n[4] for n in document["nodes"]) == pytest.approx(total, rel=1e-4)


def test_its_policy_allows_its_own_script_and_style_and_nothing_else(graph: Path) -> None:
    page = graph.read_text()
    found = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    digests = {
        tag: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for tag, text in re.findall(r"<(script|style)>(.*?)</\1>", page, re.DOTALL)
    }
    allowed = f"script-src 'sha256-{digests['script']}'; style-src 'sha256-{digests['style']}'"
    assert found == [f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"]


def test_it_works_below_its_policy_and_no_other_script_does(graph: Path) -> None:
    with browser() as page:
        page.call("Page.navigate", url=graph.as_uri())
        page.run(LOADED)
        title = page.run("document.title")
        assert title == "</script><script>document.title='owned'</script>"
        n_frames = page.run("document.querySelectorAll('.frame').length")
        assert n_frames > 3
        assert page.run("document.querySelector('.frame').clientWidth") > 100
        page.run("document.querySelectorAll('.frame')[2].click()")
        assert page.run("document.querySelectorAll('.frame.above').length") > 0
        page.run("document.getElementById('reset').click()")
        assert page.run("document.querySelectorAll('.frame').length") == n_frames
        assert (page.messages, page.requests) == ([], [graph.as_uri()])
        page.run("""new Promise(done => {
          addEventListener("securitypolicyviolation", done);
          document.body.append(Object.assign(document.createElement("script"),
            {textContent: "document.title = 'owned'"}));
        })""")
        assert page.run("document.title") == title


def test_every_page_of_the_tree_has_a_policy() -> None:
    """Those that are files carry it; the server sends it with all others."""
    folder = Path(etrace.__file__).parent
    pages = {path: path.read_bytes() for path in folder.rglob("*.html")}
    served = {content() for _, content, kind in FILES if kind == "text/html"}
    bare = {path for path, text in pages.items() if b"-Policy" not in text}
    assert (len(pages), {pages[path] for path in bare}) == (4, served)
