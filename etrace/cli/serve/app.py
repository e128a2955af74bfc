# SPDX-License-Identifier: Apache-2.0
"""The routes of the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from etrace.cli.serve import openapi, page, worker
from etrace.cli.serve.access import Access
from etrace.cli.serve.endpoints import endpoints
from etrace.cli.serve.words import words_of
from etrace.errors import EtraceError

if TYPE_CHECKING:
    from libetrace.image.file import Image

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
FILES = (
    ("/", page.html, "text/html"),
    ("/page.js", page.script, "text/javascript"),
    ("/page.css", page.style, "text/css"),
    ("/report", page.report_html, "text/html"),
    ("/report.js", page.report_script, "text/javascript"),
    ("/report.css", page.report_style, "text/css"),
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
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(RUNNING))
    _waiting: int = 0
    _reports: dict[str, bytes] = field(default_factory=dict)

    def app(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                *self._files(),
                self._route("/openapi.json", self._document, is_public=True),
                self._route("/api/v1/databases", self._databases),
                self._route("/api/v1/databases/{database}/report", self._report),
                self._route("/api/v1/databases/{database}/{query}", self._query),
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
        """Route to a handler; a public one tells nothing of a build."""

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
            raise _RefusedError(421, "this server has another name", "see --host")
        if len(request.scope.get("query_string", b"")) > MAX_QUERY_BYTES:
            raise _RefusedError(400, f"the parameters have more than {MAX_QUERY_BYTES} bytes")
        if not is_public and not self.access.allows(request.headers.get("authorization", "")):
            hint = "open the address that `etrace serve` printed, or send Authorization: Bearer"
            raise _RefusedError(401, "the token is missing or wrong", hint)

    # ---- what is answered ----

    async def _document(self, _request: Request) -> Response:
        return _json(openapi.document())

    async def _databases(self, _request: Request) -> Response:
        listed = [
            {
                "name": name,
                "source_root": image.attributes.get("source_root", ""),
                "executions": image["executions"].n_rows,
                "opens": image["opens"].n_rows,
            }
            for name, image in self.images.items()
        ]
        return _json({"databases": listed})

    def _image(self, request: Request) -> Image:
        image = self.images.get(request.path_params["database"])
        if image is None:
            raise _RefusedError(404, "no such database", "see /openapi.json")
        return image

    async def _query(self, request: Request) -> Response:
        image = self._image(request)
        endpoint = endpoints().get(request.path_params["query"])
        if endpoint is None:
            raise _RefusedError(404, "no such query", "see /openapi.json")
        with _told(image):
            words = words_of(endpoint, request.query_params.multi_items())
            body = await self._answered(request, worker.query(image, [endpoint.name, *words]))
        return Response(body, media_type="application/json")

    async def _report(self, request: Request) -> Response:
        """Return the data of the report; they are made once."""
        image, name = self._image(request), request.path_params["database"]
        if name not in self._reports:
            with _told(image):
                self._reports[name] = await self._answered(request, worker.report(image))
        return Response(self._reports[name], media_type="application/octet-stream")

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
def _told(image: Image) -> Iterator[None]:
    """Tell the client what was wrong with its question, but not where the database is."""
    try:
        yield
    except EtraceError as error:
        status = next((STATUS[kind] for kind in STATUS if isinstance(error, kind)), 400)
        texts = (error.message, error.hint)
        place = os.fspath(image.path)
        message, hint = (text.replace(place, image.path.name) for text in texts)
        raise _RefusedError(status, message, hint) from None


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
