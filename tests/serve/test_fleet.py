# SPDX-License-Identifier: Apache-2.0
"""`etrace serve --fleet`: the API of a fleet, and its page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleets
import pytest
from browser import Page, browser
from fleets import about
from libetrace.image.file import Image
from serve.asking import Server
from serve.test_command import fail

from etrace.fleet.dataset import Dataset, open_dataset
from etrace.fleet.duck import Duck
from etrace.fleet.questions import question

API = "/api/v1/fleet"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return fleets.lua(tmp_path_factory.mktemp("lua"))


@pytest.fixture(scope="module")
def fleet(lua: Image, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return fleets.fleet_of(
        tmp_path_factory.mktemp("secret-place") / "f", lua,
        about("1", commit="c1", team="a"), about("2", day=9, commit="c2", team=HOSTILE),
        about("3", day=10, project=HOSTILE),
    )  # fmt: skip


@pytest.fixture(scope="module")
def server(fleet: Dataset) -> Iterator[Server]:
    made = Server(options=("--fleet", str(fleet.store.place)))
    yield made
    assert "Traceback" not in made.end()


def test_it_says_what_there_is(server: Server) -> None:
    found = server.ask(API).value
    assert [(each["project"], each["builds"]) for each in found["projects"]] == [
        (HOSTILE, 1), ("lua", 2)
    ]  # fmt: skip
    names = {each["name"]: each["parameters"] for each in found["queries"]}
    assert [each["name"] for each in names["products-with-file"]] == ["file"]
    assert server.ask("/api/v1/databases").value == {"databases": []}


def test_a_query_is_that_of_the_command(fleet: Dataset, server: Server) -> None:
    asked = question("products-with-file")
    rows = Duck(fleet).ask(asked.for_duckdb, {"file": "src/lvm.h"}, is_trusted=True)
    modules = [(row[0], row[1]) for row in rows.rows]
    answer = server.ask(f"{API}/queries/products-with-file", file="src/lvm.h").value
    assert [(each["project"], each["module"]) for each in answer["entries"]] == modules
    assert (answer["columns"], answer["is_cut"]) == (rows.columns, False)
    some = server.ask(f"{API}/queries/builds", project="lua", since="2026-11-05").value
    assert [each["build"] for each in some["entries"]] == ["2"]
    assert server.ask(f"{API}/queries/builds", project=["lua", HOSTILE]).value["entries"][2:]


def test_a_trend_has_its_picture(server: Server) -> None:
    found = server.ask(f"{API}/trends", figure="dependencies", of="src/lua", project="lua").value
    assert [each["commit"] for each in found["points"]] == ["c1", "c2"]
    assert found["svg"].startswith("<svg ")
    time = server.ask(f"{API}/trends", project="lua").value
    assert (time["title"], len(time["points"])) == ("time", 2)


@pytest.mark.parametrize(
    ("address", "given", "said"),
    [
        ("queries/products-with-file", {}, "file: missing"),
        ("queries/builds", {"since": "soon"}, "since: soon: not a date"),
        ("queries/builds", {"since": ["2026-01-01", "2026-01-02"]}, "since: given twice"),
        ("queries/builds", {"file": "x"}, "file: no such parameter"),
        ("trends", {"figure": "beauty"}, "figure: 'beauty' is not one of time"),
        ("trends", {"figure": "size"}, "of: missing"),
        ("trends", {"figure": "time", "of": "x"}, "of: no such parameter"),
        ("trends", {"figure": "step", "of": "x\0y"}, "no build has step"),
    ],
)
def test_a_wrong_parameter_is_named(
    server: Server, address: str, given: dict[str, Any], said: str
) -> None:
    answer = server.ask(f"{API}/{address}", **given)
    assert (answer.status, said in answer.value["error"]) == (400, True), answer.value


def test_an_unknown_query_and_a_server_without_a_fleet(server: Server, database: Path) -> None:
    assert server.ask(f"{API}/queries/secrets").status == 404
    other = Server(database)
    answer = other.ask(API)
    assert (answer.status, answer.value["hint"]) == (404, "etrace serve --fleet DIR")
    other.end()


@pytest.mark.parametrize("address", [API, f"{API}/trends", f"{API}/queries/builds"])
def test_nothing_is_shown_without_the_token(server: Server, address: str) -> None:
    assert server.ask(address, {}).status == 401


def test_the_document_has_every_question(server: Server) -> None:
    paths = server.ask("/openapi.json", {}).value["paths"]
    for each in server.ask(API).value["queries"]:
        parameters = paths[f"{API}/queries/{each['name']}"]["get"]["parameters"]
        required = [own["name"] for own in parameters if own["required"]]
        assert required == [own["name"] for own in each["parameters"]]
    assert f"{API}/trends" in paths


def test_a_build_that_was_added_is_in_the_next_answer(lua: Image, tmp_path: Path) -> None:
    place = tmp_path / "f"
    dataset = fleets.fleet_of(place, lua, about("1"))
    server = Server(options=("--fleet", str(place)))
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    assert len(server.ask(f"{API}/queries/builds").value["entries"]) == 1
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    fleets.add(dataset, lua, about("2"))
    assert len(server.ask(f"{API}/queries/builds").value["entries"]) == 2
    (place / "fleet.json").write_text("{")
    answer = server.ask(API)
    assert answer.status == 400
    assert str(tmp_path) not in answer.body.decode()
    server.end()


def test_a_place_that_is_no_fleet_is_refused(tmp_path: Path) -> None:
    status, said = fail("--fleet", str(tmp_path))
    assert (status, str(tmp_path) in said) == (2, True)
    assert "fleet" in said


def test_a_fleet_of_an_object_store_is_served(lua: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    with fleets.object_store() as store:
        place = fleets.bucket(store, "served", monkeypatch)
        fleets.add(open_dataset(place), lua, about("1"))
        server = Server(options=("--fleet", place))
        assert server.ask(f"{API}/queries/builds").value["entries"][0]["build"] == "1"
        assert server.ask(f"{API}/trends", figure="dependencies", of="src/lua").status == 200
        assert "serving fleet fleet;" in server.end()


# ---- the page

#: waits until no section asks any more; returns its text
SHOWN = """new Promise(done => {{
  const look = () => {{
    const text = document.querySelector("#{} .body")?.textContent;
    text && text !== "asking ..." ? done(text) : setTimeout(look, 20);
  }};
  look();
}})"""


@pytest.fixture(scope="module")
def page(server: Server) -> Iterator[Page]:
    with browser() as opened:
        address = f"http://127.0.0.1:{server.port}/fleet#token={server.token}"
        opened.call("Page.navigate", url=address)
        shown = SHOWN.format("builds")
        opened.run(f"document.readyState === 'complete' ? {shown} : new Promise(done => "
                   f"addEventListener('load', () => done({shown})))")  # fmt: skip
        yield opened


def chosen(page: Page, name: str, value: str) -> None:
    """Choose a value in the head or in a form."""
    page.run(f"""(() => {{
      const field = document.getElementById({name!r});
      field.value = {value!r};
      field.dispatchEvent(new Event("change"));
    }})()""")


def test_the_page_shows_trends_steps_and_builds(page: Page, server: Server) -> None:
    assert page.run("location.href") == f"http://127.0.0.1:{server.port}/fleet"
    chosen(page, "project", "lua")
    assert "No change beyond the noise" in page.run(SHOWN.format("trends"))
    sizes = page.run("""(async () => {
      const image = document.querySelector("#trends img");
      await image.decode();
      return [image.naturalWidth, image.alt];
    })()""")
    assert sizes[0] > 0
    assert sizes[1] == "time, 2 commits"
    assert "cc1 lvm.c" in page.run(SHOWN.format("steps"))
    assert f"team={HOSTILE}" in page.run(SHOWN.format("builds"))
    assert page.run("document.querySelectorAll('img').length") == 1


def test_a_step_shows_its_trend(page: Page) -> None:
    chosen(page, "project", "lua")
    page.run(SHOWN.format("steps"))
    page.run("[...document.querySelectorAll('#steps button')]"
             ".find(each => each.textContent === 'cc1 lvm.c').click()")  # fmt: skip
    page.run(SHOWN.format("trends"))
    alt = "document.querySelector('#trends img').alt"
    assert page.run(alt) == "step of cc1 lvm.c, 2 commits"


def test_a_file_shows_its_products_or_names_like_it(page: Page) -> None:
    chosen(page, "project", "lua")
    page.run("document.getElementById('path').value = 'lvm.h'")
    page.run("document.querySelector('#file button').click()")
    assert "No module was made of lvm.h" in page.run(SHOWN.format("file"))
    page.run("document.querySelector('#file td button').click()")
    assert "src/luac" in page.run(SHOWN.format("file"))


def test_a_build_shows_its_report(page: Page) -> None:
    chosen(page, "project", "lua")
    page.run(SHOWN.format("builds"))
    page.run("document.querySelector('#builds td button').click()")
    said = page.run(SHOWN.format("build"))
    assert page.run("document.getElementById('build-name').textContent") == "2"
    assert [part in said for part in ("Slowest commands", "cc1 lvm.c", "src/liblua.a")] == [
        True
    ] * 3
    assert page.messages == []


def test_any_question_can_be_asked(page: Page) -> None:
    chosen(page, "project", "lua")
    chosen(page, "query", "time-by-label")
    page.run("document.querySelector('#parameters input').value = 'team'")
    page.run("document.querySelector('#more button[type=submit]').click()")
    assert HOSTILE in page.run(SHOWN.format("more"))
    assert page.run("document.querySelectorAll('table img').length") == 0
