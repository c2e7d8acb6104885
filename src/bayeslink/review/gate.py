"""Who may speak to the review server: this machine's browser, with the token, from our own page.

The server listens on the loopback address only, but any program or web page on the machine can
reach that. So the Host must be ours (a foreign name that resolves to the loopback address is
refused), every request needs a cookie that only the token in the printed address is exchanged for,
and what changes anything must be JSON posted from our own origin.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
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

    def __init__(self, app: ASGIApp, port: int, log: Callable[[str], None]) -> None:
        self._app, self._log = app, log
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._cookie = f"bayeslink-review-{port}"  # ports share the cookies of a host
        self._secret = secrets.token_urlsafe(32)
        self.token = secrets.token_urlsafe(32)
        self._once = secrets.token_urlsafe(32)

    @property
    def token_for_once(self) -> str:
        """A token that is good for one visit: a browser is started with it in its arguments."""
        return self._once

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
        if scope["path"] == "/" and scope["method"] == "GET" and scope["query_string"]:
            return self._exchange(parse_qs(scope["query_string"].decode("latin-1")))
        if not self._is_known(headers):
            return _forbidden("Open the address that `bayeslink review` printed.")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _forbidden("Only the review page itself may ask for this.")
        if scope["method"] not in ("GET", "HEAD"):
            kind = headers.get("content-type", "").partition(";")[0].strip()
            if headers.get("origin") != f"http://{headers['host']}" or kind != "application/json":
                return _forbidden("Only the review page itself may change anything.")
        return None

    def _exchange(self, query: dict[str, list[str]]) -> Response:
        """A cookie for the token; the redirection takes the token out of the address bar."""
        given = query.get("token", [])
        if len(given) != 1 or not self._accepts(given[0]):
            return _forbidden("Open the address that `bayeslink review` printed.")
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict")
        return response

    def _accepts(self, token: str) -> bool:
        if _equal(token, self._once):
            self._once = secrets.token_urlsafe(32)
            return True
        return _equal(token, self.token)

    def _is_known(self, headers: Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and _equal(cookie.value, self._secret)


def _equal(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _forbidden(words: str) -> Response:
    return PlainTextResponse(f"403: {words}\n", 403)
