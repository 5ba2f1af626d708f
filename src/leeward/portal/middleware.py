"""Handling of every request around its route: host, prefix, size, time slot, headers, log, metrics."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from leeward.portal.faults import frames_of
from leeward.portal.models import PROBLEM, Problem
from leeward.portal.settings import Settings

SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Where several processes of a portal keep their figures, so that each can give the sum of all."""


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "leeward_portal_requests", "Requests", ("route", "method", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "leeward_portal_seconds", "Seconds to a reply, slot included", ("route",), registry=self.registry
        )

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        known = method if method in {"GET", "POST", "DELETE", "HEAD"} else "other"
        self._requests.labels(route, known, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def to_text(self) -> bytes:
        """In Prometheus' text format."""
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        collect: Any = MultiProcessCollector  # the library does not type it
        collect(together)
        return generate_latest(together)


LOGGER: Final = logging.getLogger("leeward.portal")
ALLOWED: Final = frozenset({
    "request", "route", "method", "status", "milliseconds", "person", "fault", "count", "address", "version", "place",
    "reason", "frames",
})  # fmt: skip
"""Keys that may be logged. `route` is the pattern of an address, `fault` the kind of an error, `frames` where it
happened; never its message."""


def write_log(event: str, **facts: Any) -> None:
    """Log an event; what is not on the list is left out, and what has no value too."""
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    kept = {name: value for name, value in facts.items() if name in ALLOWED and value is not None}
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    LOGGER.info(json.dumps({"time": time, "event": event, **kept}, default=str))


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

API: Final = "/api/"
LARGEST_BODY: Final = 64 * 1024
BODY_SECONDS: Final = 10.0
CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
AT_ONCE: Final = ("/static/",)
"""Paths that do not wait for a slot: files that are the same for everybody."""


class Refusal(HTTPException):
    """A request that is answered before it reaches a route."""


class Gate:
    """The outermost application."""

    def __init__(self, app: App, settings: Settings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        more = {"strict-transport-security": "max-age=31536000"} if settings.secure else {}
        self.headers = [(name.encode(), value.encode()) for name, value in {**HEADERS, **more}.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        number = secrets.token_hex(8)
        scope.setdefault("state", {})
        scope["state"] |= {"request_id": number, "viewer": None, "project": None}
        seen = {"status": 500}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                message["headers"] = self._headers(message.get("headers", []), number)
                await self._wait(scope, began)
            await send(message)

        try:
            self._admit(scope)
            await self.app(scope, self._limit_body(scope, receive), answer)
        except Refusal as refusal:
            reply = _reply_to(refusal, number if scope["path"].startswith(API) else None)
            await reply(scope, receive, answer)
        except Exception as error:
            # was answered with 500; its words, which may hold values, stay out of the log
            write_log("fault", request=number, fault=type(error).__name__, frames=frames_of(error))
        finally:
            self._tell(scope, number, seen["status"], time.perf_counter() - began)

    def _admit(self, scope: Scope) -> None:
        """Host, prefix, length and address of a request, before anything is read from it."""
        headers = scope["headers"]
        check_host(headers, self.settings)
        for name, value in headers:
            if name == b"content-length" and not value.isdigit():
                raise Refusal(400, "The length of the request is no number.")
            if name == b"content-length":
                check_size(int(value))
        prefix = self.settings.prefix
        if prefix and (scope["path"] == prefix or scope["path"].startswith(prefix + "/")):
            scope["path"] = scope["path"][len(prefix) :] or "/"
        scope["raw_path"] = scope["path"].encode()
        scope["root_path"] = ""
        scope["state"]["address"] = client_address(scope, self.settings.trusted_proxies)

    def _limit_body(self, scope: Scope, receive: Receive) -> Receive:
        until = time.monotonic() + BODY_SECONDS
        size = 0
        done = False

        async def receive_some() -> Message:
            nonlocal size, done
            if done:
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise Refusal(408, "The request took too long to arrive.") from None
            size += len(message.get("body", b""))
            check_size(size)
            done = message["type"] != "http.request" or not message.get("more_body")
            return message

        return receive_some

    async def _wait(self, scope: Scope, began: float) -> None:
        """Wait until the end of the slot, so that the time of a reply does not reveal the work behind it."""
        slot = self.settings.slot
        if slot > 0 and not scope["path"].startswith(AT_ONCE):
            await asyncio.sleep(-(time.perf_counter() - began) % slot)

    def _headers(self, found: list[tuple[bytes, bytes]], number: str) -> list[tuple[bytes, bytes]]:
        there = {name.lower() for name, _ in found}
        ours = [each for each in self.headers if each[0] not in there]
        return [*found, *ours, (b"x-request-id", number.encode())]

    def _tell(self, scope: Scope, number: str, status: int, seconds: float) -> None:
        path = getattr(scope.get("route"), "path", "none")
        viewer = scope["state"]["viewer"]
        self.metrics.count(str(path), scope["method"], status, seconds)
        write_log(
            "request",
            request=number,
            route=path,
            method=scope["method"],
            status=status,
            milliseconds=round(1000 * seconds),
            person=None if viewer is None else viewer.person,
            fault=scope["state"].get("fault"),
        )


def check_host(headers: list[tuple[bytes, bytes]], settings: Settings) -> None:
    """Refusal of a request that names another host than the portal's own, none, or two."""
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in {settings.host, *settings.hosts}:
        raise Refusal(400, "This is not the address of this portal.")


def check_size(size: int) -> None:
    if size > LARGEST_BODY:
        raise Refusal(413, f"A request has at most {LARGEST_BODY // 1024} KiB.")


def client_address(scope: Scope, trusted: tuple[str, ...]) -> str:
    """The client's address: the nearest one that is not a trusted proxy. Only trusted proxies' headers count."""
    client = scope.get("client")
    nearest = client[0] if client else ""
    if nearest not in trusted:
        return str(nearest)
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    for text in reversed(forwarded.decode("latin-1").split(",")):
        try:
            address = str(ipaddress.ip_address(text.strip()))
        except ValueError:
            break
        if address not in trusted:
            return address
    return str(nearest)


def _reply_to(refusal: Refusal, number: str | None) -> Response:
    """The refusal as text, or as a problem with its number."""
    close = {"connection": "close"}
    if number is None:
        return PlainTextResponse(refusal.detail, refusal.status_code, close)
    problem = Problem(title="Refused", status=refusal.status_code, detail=refusal.detail, request=number)
    return Response(problem.model_dump_json(exclude_none=True), refusal.status_code, close, PROBLEM)
