# SPDX-License-Identifier: Apache-2.0
"""The queries as an OpenAPI 3.1 document."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from etrace import __version__
from etrace.cli.fleet.options import add_range
from etrace.cli.serve.endpoints import (
    MAX_PAGE_SIZE,
    PAGE_SIZE,
    Endpoint,
    Kind,
    Parameter,
    endpoints,
)
from etrace.fleet.questions import questions

Document = dict[str, Any]
DESCRIPTION = "Queries about builds that were traced: those of `cas` and of `etrace fleet`."


def _range() -> Iterator[tuple[str, str]]:
    """Yield the options of `etrace fleet` that choose builds."""
    parser = argparse.ArgumentParser(add_help=False)
    add_range(parser)
    for action in parser._actions:  # argparse has no public way
        yield action.dest, action.help or ""


#: parameters of everything that is asked about a fleet: which builds are read
RANGE = tuple(_range())
TREND = (
    ("figure", "time (the default), cpu or commands; size or dependencies of a module; step"),
    ("of", "the module or the step"),
    *RANGE,
)
DATABASE = {
    "name": "database",
    "in": "path",
    "required": True,
    "description": "a name that /api/v1/databases lists",
    "schema": {"type": "string"},
}
ERROR = {
    "type": "object",
    "required": ["error", "hint"],
    "properties": {"error": {"type": "string"}, "hint": {"type": "string"}},
}
PAGE = {
    "type": "object",
    "description": "a page of entries; queries with one answer return it without this envelope",
    "properties": {
        "count": {"type": "integer", "description": "entries on all pages"},
        "page": {"type": "integer"},
        "page_max": {"type": "integer", "description": "the last page"},
        "entries_per_page": {"type": "integer"},
        "num_entries": {"type": "integer", "description": "entries on this page"},
        "entries": {"type": "array", "items": {}},
    },
}
STATUSES = {
    "400": "a parameter is wrong, or the database does not know what was asked for",
    "401": "the token is missing or wrong",
    "404": "no such database or query",
    "413": "the answer is too large: ask for fewer entries on a page",
    "500": "the query failed, for the reason in `error`",
    "503": "too many requests at once, or this one took too long",
}


def document() -> Document:
    """Return the document, the same for every server."""
    queries = endpoints().values()
    return {
        "openapi": "3.1.0",
        "info": {"title": "etrace", "version": __version__, "description": DESCRIPTION},
        "components": {
            "schemas": {"Error": ERROR, "Page": PAGE},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
        "paths": {
            "/api/v1/databases": {"get": _listing()},
            "/api/v1/databases/{database}/report": {"get": _report()},
            **{f"/api/v1/databases/{{database}}/{q.name}": {"get": _query(q)} for q in queries},
            "/api/v1/fleet": {"get": _fleet("fleet", "what the fleet has", ())},
            "/api/v1/fleet/trends": {
                "get": _fleet("fleet-trends", "a figure by commit, and its picture", TREND)
            },
            **{
                f"/api/v1/fleet/queries/{name}": {
                    "get": _fleet(f"fleet-{name}", asked.summary, (*asked.parameters, *RANGE))
                }
                for name, asked in questions().items()
            },
        },
    }


def _listing() -> Document:
    schema = {"type": "object", "properties": {"databases": {"type": "array", "items": {}}}}
    return {
        "operationId": "databases",
        "summary": "the databases of this server",
        "responses": {"200": _content("their names and counts", schema), **_errors("401")},
    }


def _report() -> Document:
    return {
        "operationId": "report",
        "summary": "the data that the page /report?build=NAME draws: deflated columns",
        "parameters": [DATABASE],
        "responses": {
            "200": {"description": "the data", "content": {"application/octet-stream": {}}},
            **_errors("401", "404", "413", "500", "503"),
        },
    }


def _query(endpoint: Endpoint) -> Document:
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [DATABASE, *map(_parameter, endpoint.parameters)],
        "responses": {
            "200": _content("the answer", {"$ref": "#/components/schemas/Page"}),
            **_errors(*STATUSES),
        },
    }


def _fleet(name: str, summary: str, parameters: Sequence[tuple[str, str]]) -> Document:
    """Describe what is asked about a fleet, by texts alone."""
    text: Document = {"type": "string"}
    optional = {own for own, _ in RANGE} | {own for own, _ in TREND}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [
            {"name": own, "in": "query", "description": meaning, "required": own not in optional,
             "schema": {"type": "array", "items": text} if own == "project" else text}
            for own, meaning in parameters
        ],
        "responses": {"200": _content("the answer", {"type": "object"}), **_errors(*STATUSES)},
    }  # fmt: skip


def _parameter(parameter: Parameter) -> Document:
    schema: Document = {"type": parameter.kind.value}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.kind is Kind.NUMBER:
        schema["minimum"] = 0
    if parameter.name == "entries-per-page":
        schema |= {"minimum": 1, "maximum": MAX_PAGE_SIZE, "default": PAGE_SIZE}
    if parameter.is_repeated:
        schema = {"type": "array", "items": schema}
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.help,
        "schema": schema,
    }


def _content(text: str, schema: Document) -> Document:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _errors(*statuses: str) -> Document:
    schema = {"$ref": "#/components/schemas/Error"}
    return {status: _content(STATUSES[status], schema) for status in statuses}
