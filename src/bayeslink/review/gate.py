"""Who may speak to the review server: this machine's browser, with the token, from our own page.

The server listens on the loopback address only, but any program or web page on the machine can
reach that. So the Host must be ours (a foreign name that resolves to the loopback address is
refused), all but the empty page needs the token in a header, and what changes anything must be JSON
posted from our own origin. There is no cookie: browsers send those to every port of a host, so
another server on this machine would get them. The token is in the fragment of the printed address,
which no browser sends, and the page keeps it in the storage of its own origin, port included.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
TOKEN = "X-Review-Token"
EXCHANGE = "/api/token"  # a token for the one that stays
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Gate:
    """Lets through what may pass, and puts the headers on every answer."""

    def __init__(
        self, app: ASGIApp, port: int, log: Callable[[str], None], public: Collection[str] = ()
    ) -> None:
        self._app, self._log, self._public = app, log, public
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self.token = secrets.token_urlsafe(32)
        self.token_for_once = secrets.token_urlsafe(32)  # others may see a browser's arguments

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            await (self._refusal(scope) or self._app)(scope, receive, answer)
        except Exception as error:  # a traceback might hold values of records
            self._log(f"{scope['method']} 500 {type(error).__name__}")
            if not status:
                broken = JSONResponse({"error": "the server made a mistake. Try again."}, 500)
                await broken(scope, receive, answer)
        else:
            self._log(f"{scope['method']} {status}")

    def _refusal(self, scope: Scope) -> Response | None:
        """What to answer in place of the page; None to let the request through."""
        headers = Headers(scope=scope)
        if headers.getlist("host")[1:] or headers.get("host") not in self._hosts:
            return _forbidden("This server answers to 127.0.0.1 only.")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _forbidden("Only the review page itself may ask for this.")
        changes = scope["method"] not in ("GET", "HEAD")
        if scope["path"] in self._public and not changes:  # not a word of the run
            return None
        if not self._is_known(scope["path"], headers.get(TOKEN, "")):
            return _forbidden("Open the address that `bayeslink review` printed.")
        kind = headers.get("content-type", "").partition(";")[0].strip()
        ours = headers.get("origin") == f"http://{headers['host']}" and kind == "application/json"
        if changes and not ours:
            return _forbidden("Only the review page itself may change anything.")
        return JSONResponse({"token": self.token}) if scope["path"] == EXCHANGE else None

    def _is_known(self, path: str, given: str) -> bool:
        if path == EXCHANGE and _equal(given, self.token_for_once):
            self.token_for_once = secrets.token_urlsafe(32)
            return True
        return _equal(given, self.token)


def _equal(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _forbidden(words: str) -> Response:
    return PlainTextResponse(f"403: {words}\n", 403)
