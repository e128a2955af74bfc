# SPDX-License-Identifier: Apache-2.0
"""What the API answers: the same as `cas`, in pages; its description; errors with a hint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from serve.asking import Server

from etrace.cli.cas import program
from etrace.cli.serve.endpoints import FACTS, LEFT_OUT, endpoints

CAS = "import sys; from etrace.cli.main import cas; sys.exit(cas())"
#: what a query needs to be said
ASKED = {
    **dict.fromkeys(("deps", "moddeps", "rdeps"), "/src/main.c"),
    "revmoddeps": "/src/libutil.a",
}


def by_cas(database: Path, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", CAS, *words, "--json"], check=False, stdout=subprocess.PIPE,
        env={**os.environ, "DB_DIR": str(database), "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("query", sorted(endpoints()))
def test_each_query_answers_what_cas_answers(server: Server, database: Path, query: str) -> None:
    given = {"path": ASKED[query]} if query in ASKED else {}
    if query == "info":  # one record
        answer, expected = server.query(query), by_cas(database, query, *FACTS)
    else:
        answer = server.query(query, details="true", **given)
        words = [f"--path={each}" for each in given.values()]
        expected = by_cas(database, query, "--details", "-n", "1000", *words)
    assert (answer.status, answer.value) == (200, expected)
    assert answer.headers["content-type"] == "application/json"


def test_only_queries_about_files_of_the_user_are_left_out() -> None:
    assert {each.name for each in program.QUERIES} - endpoints().keys() == LEFT_OUT


def test_no_parameter_names_a_file_to_read_or_write() -> None:
    names = {each.name for query in endpoints().values() for each in query.parameters}
    assert names.isdisjoint({"output", "dbdir", "dir", "existing", "makefile", "generate", "fmt"})


def test_a_fact_has_its_names_of_old(server: Server) -> None:
    assert server.query("stat").value == server.query("info").value["counts"]
    assert server.query("root_pid").value == {"root_pid": server.query("info").value["root_pid"]}
    assert server.query("config").status == 404


def test_pages(server: Server) -> None:
    whole = server.query("commands").value
    pages = [server.query("commands", entries_per_page=3, page=n).value for n in range(3)]
    assert [entry for page in pages for entry in page["entries"]] == whole["entries"]
    assert (whole["count"], whole["entries_per_page"], pages[0]["page_max"]) == (8, 1000, 2)


def test_a_parameter_may_be_given_several_times(server: Server) -> None:
    both = server.query("deps", path=["/src/main.o", "/src/util.o"]).value
    assert {"/src/main.c", "/src/util.c"} <= set(both["entries"])


def test_a_value_is_never_an_option_or_a_module(server: Server) -> None:
    for value in ("--output=/tmp/x", "-o", "commands", "/src/main.c --count"):
        answer = server.query("deps", path=value)
        assert answer.status == 400
        assert answer.value["error"] == f"the build opened no {value}"


@pytest.mark.parametrize(
    ("query", "parameters", "error", "hint"),
    [
        ("deps", {}, "no FILE", "name a file"),
        ("deps", {"path": "nothing.c"}, "the build opened no nothing.c", "cas refs"),
        ("deps", {"paht": "a"}, "deps has no parameter 'paht'", "path"),
        ("deps", {"path": "a\0b"}, "path: contains a NUL byte", ""),
        ("commands", {"filter": "[x"}, "--filter: '[' is never closed", "end the part"),
        ("commands", {"range": "a:b"}, "argument --range: 'a:b' is not START:END", ""),
        ("commands", {"page": "-1"}, "argument -p/--page: -1 is below 0", ""),
        ("commands", {"details": "maybe"}, "details: 'maybe' is neither true nor false", ""),
        ("commands", {"count": ["1", "1"]}, "count: given twice", "give it once"),
        ("commands", {"sorting-key": "x"}, "no key 'x' here", "there are: "),
        ("commands", {"entries-per-page": "0"}, "entries-per-page: '0' is not a number", ""),
        ("commands", {"entries-per-page": "9" * 99}, "entries-per-page: '999", ""),
        ("commands", {"output": "/tmp/x"}, "commands has no parameter 'output'", ""),
    ],
)
def test_a_wrong_parameter_is_named(
    server: Server, query: str, parameters: dict[str, Any], error: str, hint: str
) -> None:
    answer = server.query(query, **parameters)
    assert answer.status == 400
    assert answer.value["error"].startswith(error)
    assert hint in answer.value["hint"]


def test_unknown_names_are_not_found(server: Server) -> None:
    databases = "/api/v1/databases"
    for address in (f"{databases}/other/commands", f"{databases}/build/unused", "/etc/passwd",
                    f"{databases}/..%2f..%2fetc/commands"):  # fmt: skip
        answer = server.ask(address)
        assert (answer.status, set(answer.value)) == (404, {"error", "hint"})


def test_the_databases_are_listed(server: Server) -> None:
    expected = {"name": "build", "source_root": "/src", "executions": 16, "opens": 12}
    assert server.ask("/api/v1/databases").value == {"databases": [expected]}


def test_the_description_has_every_parameter(server: Server) -> None:
    document = server.ask("/openapi.json").value
    assert document["openapi"] == "3.1.0"
    for name, endpoint in endpoints().items():
        get = document["paths"][f"/api/v1/databases/{{database}}/{name}"]["get"]
        described = [each["name"] for each in get["parameters"]]
        assert described == ["database", *(each.name for each in endpoint.parameters)]
        assert {"200", "400", "401", "404", "413", "500", "503"} == set(get["responses"])
