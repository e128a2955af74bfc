# SPDX-License-Identifier: Apache-2.0
"""The page of the server in a browser: it asks what its form says and shows what `cas` answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Page, browser
from serve.asking import Server

#: waits until no question is under way; returns the state line
ANSWERED = """new Promise(done => {
  const look = () => {
    const text = document.getElementById("state")?.textContent;
    text && text !== "asking ..." ? done(text) : setTimeout(look, 20);
  };
  look();
})"""
CELLS = "[...document.querySelectorAll('#answer tbody tr')].map(row => row.textContent)"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


def opened(page: Page, server: Server) -> str:
    """Open the address that the command printed; returns the state line."""
    page.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/#token={server.token}")
    return str(page.run(f"document.readyState === 'complete' ? {ANSWERED} : new Promise(done => "
                        f"addEventListener('load', () => done({ANSWERED})))"))  # fmt: skip


def asked(page: Page, query: str, **fields: str) -> str:
    """Choose a query, fill in its parameters and ask; returns the state line."""
    page.run(f"""(() => {{
      const query = document.getElementById("query");
      query.value = {query!r};
      query.dispatchEvent(new Event("change"));
    }})()""")
    for name, value in fields.items():
        page.run(f"document.querySelector('#parameters [name={name}]').value = {value!r}")
    page.run("document.querySelector('button[type=submit]').click()")
    return str(page.run(ANSWERED))


def test_it_shows_the_commands_and_hides_the_token(page: Page, server: Server) -> None:
    assert opened(page, server) == "8 entries, page 1 of 1"
    assert len(page.run(CELLS)) == 8
    assert page.run("location.href") == f"http://127.0.0.1:{server.port}/"
    assert page.run("document.cookie") == ""


def test_a_question_is_that_of_the_form(page: Page, server: Server) -> None:
    opened(page, server)
    state = asked(page, "deps", path="/src/hello", kind="source")
    expected = server.query("deps", path="/src/hello", kind="source").value
    assert state == f"{expected['count']} entries, page 1 of 1"
    assert page.run(CELLS) == expected["entries"]


def test_an_error_is_shown_with_its_hint(page: Page, server: Server) -> None:
    opened(page, server)
    state = asked(page, "deps", path="<img src=x onerror=alert(1)>")
    assert state.startswith("the build opened no <img src=x onerror=alert(1)>. cas refs")
    assert page.run("document.querySelectorAll('img').length") == 0


def test_without_the_token_it_says_what_to_open(page: Page, server: Server) -> None:
    page.run("sessionStorage.clear()")
    page.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/?again")
    assert "the token is missing or wrong" in page.run(ANSWERED)


#: waits until the report is drawn, or says why not
DRAWN = """new Promise(done => {
  const look = () => {
    const bad = document.querySelector(".bad")?.textContent;
    globalThis.etraceReport ? done("drawn") : bad ? done(bad) : setTimeout(look, 20);
  };
  look();
})"""


def test_the_report_of_a_build_is_drawn_from_the_server(page: Page, server: Server) -> None:
    opened(page, server)
    page.messages.clear()
    page.call("Page.navigate", url=page.run("document.getElementById('report').href"))
    assert page.run(f"document.readyState === 'complete' ? {DRAWN} : new Promise(done => "
                    f"addEventListener('load', () => done({DRAWN})))") == "drawn"  # fmt: skip
    assert page.run("location.pathname + location.search") == "/report?build=build"
    assert page.run("[...document.querySelectorAll('main > section')].map(each => each.id)") == [
        "timeline", "phases", "path", "flame", "commands", "modules", "headers", "neighbours"
    ]  # fmt: skip
    n_commands = server.query("commands", count="true").value["count"]
    assert page.run("etraceReport.data.n") == n_commands
    assert page.messages == []


def test_the_data_of_a_report_are_for_those_with_the_token(server: Server) -> None:
    address = "/api/v1/databases/build/report"
    assert server.ask(address, {}).status == 401
    answers = [server.ask(address) for _ in range(2)]
    assert [each.status for each in answers] == [200, 200]
    assert answers[0].body == answers[1].body
    assert answers[0].headers["content-type"] == "application/octet-stream"
    assert server.ask("/api/v1/databases/other/report").status == 404
