"""All routes of the gateway, each with its handler and its description, on one page.

Gives: the application. Never: has a route that is not described.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from fairlead.errors import FairleadError, InvariantError, LogError, UsageError
from fairlead.web import handlers, openapi
from fairlead.web.access.admission import OPERATOR
from fairlead.web.faults import answer
from fairlead.web.gateway import CALLER, GATEWAY, Gateway, user_of
from fairlead.web.streams.socket import socket
from fairlead.web.streams.sse import events

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
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "fairlead",
}
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
    made.on_response_prepare.append(_secured)
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
    gateway = request.app[GATEWAY]
    try:
        _admit(request)
        if _path(request) in STREAMS:
            return await handler(request)
        return await _bounded(request, handler)
    except web.HTTPRequestEntityTooLarge:
        most = gateway.settings.body_bytes_max
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
    gateway.metrics.add("errors_total", code=error.code)
    return answer(error)


def _admit(request: web.Request) -> None:
    gateway = request.app[GATEWAY]
    gateway.admission.check_page(request.headers)
    if _path(request) in OPEN_TO_ALL:
        return
    caller = request[CALLER] = gateway.admission.caller(request.headers)
    rate = caller.rate or gateway.settings.rate
    if rate is not None:
        who = f"{caller.name} {request.remote}" if caller is OPERATOR else caller.name
        waiting = gateway.rates.wait(who, rate, time.monotonic())
        if waiting:
            raise UsageError("A285", f"more than {rate:g} requests per second", f"wait for {waiting:.1f} seconds")


async def _bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """1. reserves room for the body, 2. receives it, 3. handles the request; each in limited time."""
    gateway, settings = request.app[GATEWAY], request.app[GATEWAY].settings
    known = request.content_length if "Content-Encoding" not in request.headers else None
    if known is not None and known > settings.body_bytes_max:
        raise web.HTTPRequestEntityTooLarge(settings.body_bytes_max, known)
    size = (settings.body_bytes_max if known is None else known) if request.can_read_body else 0
    user = user_of(request)
    if not gateway.room.take(size, user):  # 1
        raise LogError(
            "N041", "the gateway is receiving as many bytes as it can hold", "send the request again, a little later"
        )
    try:
        try:
            async with asyncio.timeout(settings.body_seconds):
                await request.read()  # 2; kept for the handler
        except TimeoutError:
            problem = f"the body did not arrive within {settings.body_seconds:g} seconds"
            raise UsageError("A286", problem, "send smaller requests") from None
        except web.RequestPayloadError as error:
            raise UsageError("A274", f"the body is not readable: {error}", "send it as the headers say", "body") from None
        try:
            async with asyncio.timeout(settings.request_seconds):
                return await handler(request)  # 3
        except TimeoutError:
            problem = f"the request took longer than {settings.request_seconds:g} seconds"
            raise LogError(
                "N042", problem, "send smaller requests; number the events of a source, and send them again"
            ) from None
    finally:
        gateway.room.give_back(size, user)


async def _secured(request: web.Request, response: web.StreamResponse) -> None:
    """Headers by which browsers keep a response to themselves."""
    response.headers.update(SECURITY)
    response.headers.setdefault("Cache-Control", "no-store")
    if request.secure:
        response.headers["Strict-Transport-Security"] = "max-age=31536000"


def _path(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return "other" if resource is None else resource.canonical
