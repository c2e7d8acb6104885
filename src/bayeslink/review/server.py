"""The review server: one static page, and a few questions and answers in JSON."""

from __future__ import annotations

import asyncio
import json
import socket
import unicodedata
from collections.abc import Callable
from contextlib import closing
from importlib.resources import files
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bayeslink.errors import BayeslinkError, OutputError, SettingsError, reason_of
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.judging.labels import as_csv, as_parquet, label_table
from bayeslink.review.gate import Gate
from bayeslink.review.material import Material
from bayeslink.review.people_desk import PeopleDesk
from bayeslink.review.people_material import PeopleMaterial
from bayeslink.review.queues import Desk, Queues, UnknownCaseError
from bayeslink.review.rerun import Rerun
from bayeslink.review.timeouts import SECONDS, ImpatientProtocol

HOST = "127.0.0.1"
_LONGEST_BODY = 1 << 16
_LONGEST_NAME = 60
_SCRIPTS = ("page", "asking", "draw", "overview", "people")
_STATIC = {  # what anybody may have
    "": ("page.html", "text/html"),
    "page.css": ("page.css", "text/css"),
    **{f"{name}.js": (f"{name}.js", "text/javascript") for name in _SCRIPTS},
}
_KINDS = {
    "csv": (as_csv, "text/csv"),
    "parquet": (as_parquet, "application/vnd.apache.parquet"),
}


def serve(
    material: Material | PeopleMaterial,
    *,
    port: int = 0,
    ready: Callable[[str, str], None],
    log: Callable[[str], None],
    started: Callable[[uvicorn.Server], None] = lambda server: None,
) -> None:
    """Have a run reviewed, until interrupted.

    Parameters
    ----------
    port
        0 for any that is free.
    ready
        Is told the address to print, and one that is good for a single visit.
    log
        Is told the method and the status of each request, and nothing else.
    started
        Is given the server, whose `should_exit` ends it.
    """
    with (
        closing(Judgements(material.folder / FILE)) as judgements,
        closing(desk_of(material, judgements)) as desk,
        _bound(port) as listener,
    ):
        port = listener.getsockname()[1]
        gate = Gate(application(desk), port, log, public={f"/{name}" for name in _STATIC})
        ready(*(f"http://{HOST}:{port}/#token={t}" for t in (gate.token, gate.token_for_once)))
        config = uvicorn.Config(
            gate,
            http=ImpatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        started(server)
        server.run(sockets=[listener])


def desk_of(material: Material | PeopleMaterial, judgements: Judgements) -> Queues:
    """The desk for a run of pairs, or for one of people."""
    kind = PeopleDesk if isinstance(material, PeopleMaterial) else Desk
    return kind(material, judgements)


def application(desk: Any) -> Starlette:
    """What is behind the gate."""

    def static(request: Request) -> Response:
        name, kind = _STATIC[request.url.path[1:]]
        text = files("bayeslink.review").joinpath(name).read_text("utf-8")
        return Response(text, media_type=kind)

    def state(request: Request) -> Any:
        return desk.state(request.query_params.get("reviewer", ""))

    def overview(request: Request) -> Any:
        reviewer = request.query_params.get("reviewer", "")
        return {**desk.state(reviewer), **desk.overview(reviewer), "rerun": rerun.state()}

    def next_case(request: Request) -> Any:
        q = request.query_params
        reviewer = _reviewer(q.get("reviewer", ""))
        return {"case": desk.next(q.get("queue", "open"), reviewer, q.get("after"))}

    def case(request: Request) -> Any:
        reviewer = _reviewer(request.query_params.get("reviewer", ""))
        return desk.case(
            request.path_params["key"], reviewer, request.query_params.get("queue", "")
        )

    def evidence(request: Request) -> Any:
        return desk.evidence(request.path_params["key"])

    def judge(body: dict[str, Any]) -> Any:
        key, version, verdicts = body.get("case"), body.get("version"), body.get("verdicts")
        if not (isinstance(key, str) and isinstance(version, str) and isinstance(verdicts, list)):
            raise SettingsError("a judgement has a case, its version and a list of verdicts.")
        desk.judge(key, version, _reviewer(body.get("reviewer")), list(map(str, verdicts)))
        return {"saved": key, "disputed": desk.disputed(key)}

    def undo(body: dict[str, Any]) -> Any:
        return {"case": desk.undo(_reviewer(body.get("reviewer")))}

    def sample(body: dict[str, Any]) -> Any:
        desk.draw_sample(body.get("size", 0))
        return {}

    def relink(body: dict[str, Any]) -> Any:
        rerun.start()
        return {}

    def labels(request: Request) -> Response:
        name, kind = request.path_params["name"], request.path_params["kind"]
        if name not in ("labels", "splink") or kind not in _KINDS:
            return JSONResponse({"error": "there is no such file."}, 404)
        write, media = _KINDS[kind]
        table = label_table(desk.judgements, splink=name == "splink", names=desk.material.names)
        content = write(table)
        headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'}
        return Response(content, media_type=media, headers=headers)

    rerun = Rerun(desk.material.run)
    routes = [Route(f"/{name}", static) for name in _STATIC]
    routes += [
        Route("/api/state", _asked(state)),
        Route("/api/overview", _asked(overview)),
        Route("/api/next", _asked(next_case)),
        Route("/api/case/{key}", _asked(case)),
        Route("/api/evidence/{key}", _asked(evidence)),
        Route("/api/judge", _told(judge), methods=["POST"]),
        Route("/api/undo", _told(undo), methods=["POST"]),
        Route("/api/sample", _told(sample), methods=["POST"]),
        Route("/api/relink", _told(relink), methods=["POST"]),
        Route("/files/{name}.{kind}", _asked(labels)),
    ]
    return Starlette(routes=routes)


def _asked(answer: Callable[[Request], Any]) -> Callable[[Request], Response]:
    """A question, in a thread of its own."""
    return lambda request: _respond(lambda: answer(request))


def _told(act: Callable[[dict[str, Any]], Any]) -> Callable[[Request], Any]:
    """A change, from a JSON object that was posted."""

    async def endpoint(request: Request) -> Response:
        body = b""
        try:
            async with asyncio.timeout(SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > _LONGEST_BODY:
                        return JSONResponse({"error": "too much was sent."}, 413)
        except TimeoutError:
            return JSONResponse({"error": "the rest of the request did not come."}, 408)
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            return JSONResponse({"error": "what was sent is no JSON object."}, 400)
        return await run_in_threadpool(_respond, lambda: act(given))

    return endpoint


def _respond(act: Callable[[], Any]) -> Response:
    try:
        answer = act()
    except UnknownCaseError as error:
        return JSONResponse({"error": str(error)}, 404)
    except OutputError as error:  # such as a database that another process has locked
        return JSONResponse({"error": str(error)}, 503)
    except BayeslinkError as error:
        return JSONResponse({"error": str(error)}, 400)
    return answer if isinstance(answer, Response) else JSONResponse(answer)


def _reviewer(name: Any) -> str:
    """A name that can be shown and compared."""
    name = unicodedata.normalize("NFC", " ".join(name.split())) if isinstance(name, str) else ""
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise SettingsError(
            f"a reviewer needs a name of 1 to {_LONGEST_NAME} characters that can be seen."
        )
    return name


def _bound(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on port {port}: {reason_of(error)}. "
            "Choose another --port, or leave it out."
        ) from None
    listener.listen(64)
    return listener
