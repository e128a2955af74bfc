# SPDX-License-Identifier: Apache-2.0
"""The routes of the server.

The pages of queries and of a fleet are in `web/`; that of the report is etrace/report's. All ask
the API as any program does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from etrace.cli.serve import openapi, worker
from etrace.cli.serve.connections import Access
from etrace.cli.serve.endpoints import find, words_of
from etrace.errors import EtraceError
from etrace.fleet.questions import questions
from etrace.report import page as report

if TYPE_CHECKING:
    from libetrace.image.file import Image

    from etrace.cli.serve.fleet import Fleet
    from etrace.cli.serve.live import Live

MAX_QUERY_BYTES = 16 << 10
#: questions that run at once, and that may wait for those
RUNNING, WAITING = 4, 32
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


# ---- pages ----

FOLDER = Path(__file__).with_name("web")


@cache
def _read(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@cache
def report_html() -> bytes:
    """Return the page of a report."""
    return report.served().encode()


@cache
def report_script() -> bytes:
    """Return what it runs."""
    return report.script().encode()


@cache
def report_style() -> bytes:
    """Return its style sheet."""
    return report.style().encode()


FILES = (
    ("/", partial(_read, "page.html"), "text/html"),
    ("/page.js", partial(_read, "page.js"), "text/javascript"),
    ("/page.css", partial(_read, "page.css"), "text/css"),
    ("/common.js", partial(_read, "common.js"), "text/javascript"),
    ("/fleet", partial(_read, "fleet.html"), "text/html"),
    ("/fleet.js", partial(_read, "fleet.js"), "text/javascript"),
    ("/fleet.css", partial(_read, "fleet.css"), "text/css"),
    ("/report", report_html, "text/html"),
    ("/report.js", report_script, "text/javascript"),
    ("/report.css", report_style, "text/css"),
)
#: of an error that is not the question's fault
STATUS = {worker.TooLargeError: 413, worker.TooLongError: 503, worker.CrashedError: 500}
Handler = Callable[[Request], Awaitable[Response]]


class _RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


@dataclass(slots=True)
class Server:
    """The databases by name, who may ask for them, and what a question may take."""

    images: Mapping[str, Image]
    access: Access
    limits: worker.Limits = field(default_factory=worker.Limits)
    lives: Mapping[str, Live] = field(default_factory=dict)  #: builds that run, by name
    fleet: Fleet | None = None
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(RUNNING))
    _waiting: int = 0
    _reports: dict[str, tuple[Image, bytes]] = field(default_factory=dict)

    def app(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                *self._files(),
                self._route("/openapi.json", self._document, is_public=True),
                self._route("/api/v1/databases", self._databases),
                self._route("/api/v1/databases/{database}/report", self._report),
                self._route("/api/v1/databases/{database}/{query}", self._query),
                self._route("/api/v1/fleet", self._fleet),
                self._route("/api/v1/fleet/trends", self._fleet_trends),
                self._route("/api/v1/fleet/queries/{query}", self._fleet_query),
            ],
            exception_handlers={404: _not_found, 405: _not_found},
        )

    def _files(self) -> Iterator[Route]:
        """Yield the routes of the pages and what they consist of."""
        for path, content, media_type in FILES:

            async def file(
                _request: Request,
                content: Callable[[], bytes] = content,
                media_type: str = media_type,
            ) -> Response:
                return Response(content(), media_type=media_type)

            yield self._route(path, file, is_public=True)

    def _route(self, path: str, handler: Handler, *, is_public: bool = False) -> Route:
        """Route to a handler; a public one says nothing of a build."""

        async def guarded(request: Request) -> Response:
            try:
                self._admit(request, is_public=is_public)
                response = await handler(request)
            except _RefusedError as problem:
                return _error(problem.status, problem.message, problem.hint)
            response.headers.update(HEADERS)
            return response

        return Route(path, guarded, methods=["GET"])

    def _admit(self, request: Request, *, is_public: bool) -> None:
        if not self.access.knows_host(request.headers.get("host", "")):
            raise _RefusedError(
                421,
                "the Host header is not the address of this server",
                "start etrace serve with --host ADDRESS",
            )
        if len(request.scope.get("query_string", b"")) > MAX_QUERY_BYTES:
            raise _RefusedError(400, f"the parameters have more than {MAX_QUERY_BYTES} bytes")
        if not is_public and not self.access.allows(request.headers.get("authorization", "")):
            hint = "open the address that `etrace serve` printed, or send Authorization: Bearer"
            raise _RefusedError(401, "the token is missing or wrong", hint)

    # ---- what is answered ----

    async def _document(self, _request: Request) -> Response:
        return _json(openapi.document())

    async def _databases(self, _request: Request) -> Response:
        images = {
            **self.images,
            **{name: await _current(each) for name, each in self.lives.items()},
        }
        listed = [
            {
                "name": name,
                "source_root": image.attributes.get("source_root", ""),
                "executions": image["executions"].n_rows,
                "opens": image["opens"].n_rows,
            }
            for name, image in images.items()
        ]
        return _json({"databases": listed})

    async def _image(self, request: Request) -> Image:
        name = request.path_params["database"]
        if name in self.lives:
            return await _current(self.lives[name])
        image = self.images.get(name)
        if image is None:
            raise _RefusedError(404, "no such database", "see /openapi.json")
        return image

    async def _query(self, request: Request) -> Response:
        image = await self._image(request)
        endpoint = find(request.path_params["query"])
        if endpoint is None:
            raise _RefusedError(404, "no such query", "see /openapi.json")
        with _reporting(image.path):
            words = words_of(endpoint, request.query_params.multi_items())
            body = await self._answered(request, worker.query(image, [*endpoint.words, *words]))
        return Response(body, media_type="application/json")

    async def _report(self, request: Request) -> Response:
        """Return the data of the report; they are made once for each image."""
        image, name = await self._image(request), request.path_params["database"]
        is_running = name in self.lives and self.lives[name].is_running
        known, body = self._reports.get(name, (None, b""))
        if known is not image:
            with _reporting(image.path):
                body = await self._answered(request, worker.report(image))
            self._reports[name] = image, body
        headers = {"X-Etrace-Running": "1"} if is_running else {}
        return Response(body, media_type="application/octet-stream", headers=headers)

    async def _fleet(self, request: Request) -> Response:
        return await self._of_fleet(request, lambda fleet: fleet.described())

    async def _fleet_query(self, request: Request) -> Response:
        name, given = request.path_params["query"], request.query_params.multi_items()
        asked = questions().get(name)
        if asked is None:
            raise _RefusedError(404, "no such query", "see /openapi.json")
        return await self._of_fleet(request, lambda fleet: fleet.answered(asked, given))

    async def _fleet_trends(self, request: Request) -> Response:
        given = request.query_params.multi_items()
        return await self._of_fleet(request, lambda fleet: fleet.trends(given))

    async def _of_fleet(
        self, request: Request, make: Callable[[Fleet], worker.Question]
    ) -> Response:
        if self.fleet is None:
            raise _RefusedError(404, "this server has no fleet", "etrace serve --fleet DIR")
        with _reporting(self.fleet.place):
            body = await self._answered(request, make(self.fleet))
        return Response(body, media_type="application/json")

    async def _answered(self, request: Request, question: worker.Question) -> bytes:
        """Return the answer when its turn comes; end it when nobody waits for it any more."""
        if self._waiting >= WAITING:
            raise _RefusedError(503, "too many requests at once", "ask again in a moment")
        asking = asyncio.create_task(self._in_turn(question))
        leaving = asyncio.create_task(_gone(request))
        try:
            await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return await asking
            raise _RefusedError(499, "nobody waits for the answer")
        finally:
            for task in (asking, leaving):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, EtraceError):
                await asking

    async def _in_turn(self, question: worker.Question) -> bytes:
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            return await worker.answer(question, self.limits)
        finally:
            self._turns.release()


@contextlib.contextmanager
def _reporting(place: str | os.PathLike[str]) -> Iterator[None]:
    """Show the client what was wrong with its question, but not where the answer was looked for."""
    try:
        yield
    except EtraceError as error:
        status = next((STATUS[kind] for kind in STATUS if isinstance(error, kind)), 400)
        texts = (error.message, error.hint)
        message, hint = (text.replace(os.fspath(place), PurePath(place).name) for text in texts)
        raise _RefusedError(status, message, hint) from None


async def _current(live: Live) -> Image:
    """Return the database of a build that runs."""
    try:
        return await live.image()
    except EtraceError as error:
        raise _RefusedError(503, error.message, error.hint) from None


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _not_found(_request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return _error(status, "nothing is here", "see /openapi.json")


def _json(value: Any, status: int = 200) -> Response:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    body = text.encode("utf-8", "backslashreplace")
    return Response(body, status, media_type="application/json")


def _error(status: int, message: str, hint: str = "") -> Response:
    response = _json({"error": message, "hint": hint}, status)
    response.headers.update(HEADERS)
    return response
