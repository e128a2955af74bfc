# SPDX-License-Identifier: Apache-2.0
"""Stacks of calls, and the page of a flame graph."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from browser import browser
from xray import samples
from xray.builder import LogBuilder
from xray.samples import MT, MT_MAP, TAIL, run, session

import etrace
from etrace.cli.serve.app import FILES
from etrace.xray.session import Selection
from etrace.xray.stacks import Stacks, stacks, stacks_by_thread


@pytest.mark.parametrize("name", samples.FDR_LOGS)
def test_stacks_are_those_of_llvm_xray(name: str) -> None:
    """Exactly, but for recursion: there llvm-xray makes several stacks of one path."""
    blocks = samples.oracle(f"{name}.stack").split("lvl   function")[1:]
    assert blocks
    found = [
        {tuple(part.name[:40] for part in node.path()): node for node in one.nodes}
        for one in stacks_by_thread(session(name))
    ]
    for block in blocks:
        rows = re.findall(r"#\d+\s+(.*?)\s{2,}(\d+)\s+(\d+)\n", block)
        path = tuple(function.rstrip(".")[:40] for function, _, _ in rows)
        figures = [(int(count), int(ticks)) for _, count, ticks in rows]
        ours = [[(p.count, p.ticks) for p in one[path].path()] for one in found if path in one]
        if len(set(path)) == len(path):
            assert figures in ours, path
        else:
            assert any(all(a <= b for a, b in zip(figures, o, strict=True)) for o in ours), path


def test_self_times_of_all_stacks_add_up_to_the_roots() -> None:
    found = stacks(session("mt_pie19.fdr"))
    total = sum(node.self_ticks for node in found.nodes)
    assert total == sum(root.ticks for root in found.roots)
    folded = [line.rpartition(" ") for line in found.folded("self")]
    assert sum(int(value) for _, _, value in folded) == total
    assert len({names for names, _, _ in folded}) == len(folded)


def figures(found: Stacks) -> set[tuple[str, int, int]]:
    return {
        (";".join(part.name for part in node.path()), node.count, node.ticks)
        for node in found.nodes
    }


def test_threads_can_be_kept_apart() -> None:
    found = list(stacks_by_thread(session("mt_pie19.fdr")))
    assert len({one.thread for one in found}) == 5
    together = stacks(session("mt_pie19.fdr"))
    assert sum(n.count for one in found for n in one.nodes) == sum(n.count for n in together.nodes)
    one = found[2]
    alone = replace(session("mt_pie19.fdr"), selection=Selection(threads=[one.thread]))
    (same,) = stacks_by_thread(alone)
    assert (same.process, same.thread) == (one.process, one.thread)
    assert figures(same) == figures(one) == figures(stacks(alone))


def test_a_thread_of_several_logs_has_its_stacks_once() -> None:
    once = session("mt_pie19.fdr")
    found = list(stacks_by_thread(replace(once, paths=[*once.paths, *once.paths])))
    assert len(found) == 5
    assert sum(n.count for one in found for n in one.nodes) == 2 * sum(
        n.count for n in stacks(once).nodes
    )


def test_stacks_of_threads_obey_the_filter(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stack", "--per-thread", "--format", "json", "-t", "25445", MT) == 0
    stacks = json.loads(capsys.readouterr().out)["stacks"]
    assert {row["thread"] for row in stacks} == {25445}
    assert sum(row["count"] for row in stacks) == 72
    assert run("stack", "--per-thread", "-t", "1", MT) == 0
    assert capsys.readouterr().out == ""


def test_a_thread_of_two_logs_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    def counts(*logs: str) -> dict[tuple[int, ...], int]:
        assert run("stack", "--per-thread", "--format", "json", *logs) == 0
        rows = json.loads(capsys.readouterr().out)["stacks"]
        found = {(row["thread"], *row["stack"]): row["count"] for row in rows}
        assert len(found) == len(rows)
        return found

    assert counts(TAIL, TAIL) == {key: 2 * n for key, n in counts(TAIL).items()}
    assert counts(TAIL, MT) == counts(TAIL) | counts(MT)


def test_notes_are_of_all_threads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    builder = LogBuilder().thread(1).cpu(0, 0).enter(1, 0).exit(1, 1)
    path.write_bytes(builder.thread(2).cpu(0, 0).exit(9, 1).enter(1, 0).exit(1, 1).build())
    assert run("stack", "--per-thread", str(path)) == 0
    assert "note: 1 exit of a call begun before the log" in capsys.readouterr().err


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
    assert (len(pages), {pages[path] for path in bare}) == (5, served)
