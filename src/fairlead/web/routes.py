"""All routes of the gateway, each with its handler and its description, on one page.

Gives: the application. Never: has a route that is not described.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from fairlead.errors import FairleadError, InvariantError, UsageError
from fairlead.web import handlers, openapi
from fairlead.web.faults import answer
from fairlead.web.gateway import GATEWAY, Gateway
from fairlead.web.socket import socket
from fairlead.web.sse import events

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def described(request: web.Request) -> web.Response:
    return web.json_response(DOCUMENT)


ROUTES: tuple[tuple[str, str, Handler, openapi.Described], ...] = (
    ("GET", "/health", handlers.health, openapi.HEALTH),
    ("GET", "/metrics", handlers.metrics, openapi.METRICS),
    ("GET", "/openapi.json", described, openapi.DESCRIPTION),
    ("GET", "/types", handlers.types, openapi.TYPES),
    ("POST", "/types", handlers.declare, openapi.DECLARE),
    ("POST", "/events", handlers.publish, openapi.PUBLISH),
    ("POST", "/subscriptions", handlers.subscribe, openapi.SUBSCRIBE),
    ("DELETE", "/subscriptions/{name}", handlers.forget, openapi.FORGET),
    ("GET", "/subscriptions/{name}/events", events, openapi.EVENTS),
    ("GET", "/subscriptions/{name}/socket", socket, openapi.SOCKET),
    ("POST", "/subscriptions/{name}/acknowledgements", handlers.acknowledge, openapi.ACKNOWLEDGE),
    ("GET", "/subscriptions/{name}/receipts", handlers.receipts, openapi.RECEIPTS),
    ("GET", "/comparison", handlers.compare, openapi.COMPARE),
)
OPEN_TO_ALL = {"/health"}
STREAMS = {"/subscriptions/{name}/events", "/subscriptions/{name}/socket"}


def _paths() -> openapi.Described:
    found: openapi.Described = {}
    for method, path, _, operation in ROUTES:
        found.setdefault(path, {})[method.lower()] = operation
    return found


DOCUMENT = openapi.document(_paths())


def application(gateway: Gateway) -> web.Application:
    made = web.Application(middlewares=[_counted, _answered], client_max_size=gateway.settings.body_bytes_max)
    made[GATEWAY] = gateway
    for method, path, handler, _ in ROUTES:
        made.router.add_route(method, path, handler)
    return made


@web.middleware
async def _counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    metrics, path, begun = request.app[GATEWAY].metrics, _path(request), time.monotonic()
    response = await handler(request)
    metrics.add("requests_total", method=request.method if path != "other" else "other", path=path, status=str(response.status))
    if path not in STREAMS:
        metrics.add("request_seconds_total", time.monotonic() - begun, path=path)
    return response


@web.middleware
async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Converts errors to responses. Missing permission is reported first."""
    metrics = request.app[GATEWAY].metrics
    try:
        _admit(request)
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        most = request.app[GATEWAY].settings.body_bytes_max
        error: FairleadError = UsageError("A270", f"the body is larger than {most:,} bytes", "send it in several requests")
    except web.HTTPException as refused:
        problem = f"{request.method} {request.path}: {refused.reason.lower()}"
        fix = "see /openapi.json for what there is"
        return web.json_response({"code": "A274", "place": None, "problem": problem, "fix": fix}, status=refused.status)
    except FairleadError as found:
        error = found
    except (ConnectionError, NotImplementedError):
        raise
    except Exception as bug:  # its traceback is for the operator of the gateway
        request.app.logger.exception("a request failed")
        error = InvariantError("X004", f"the gateway failed: {type(bug).__name__}", "report this, with the gateway's log")
    metrics.add("errors_total", code=error.code)
    return answer(error)


def _admit(request: web.Request) -> None:
    settings = request.app[GATEWAY].settings
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.host and origin not in settings.origins:
        problem = f"web pages from {origin} are not allowed to use this gateway"
        raise UsageError("A273", problem, f"allow it: fairlead gateway --origin {origin}", "header 'origin'")
    if _path(request) not in OPEN_TO_ALL and not settings.allows(request.headers.get("Authorization")):
        raise UsageError(
            "A272", "the bearer token is missing or wrong", "send Authorization: Bearer …", "header 'authorization'"
        )


def _path(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return "other" if resource is None else resource.canonical
