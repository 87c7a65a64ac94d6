"""Pushes OTLP to a collector: one thread reads, another one sends, and what cannot be sent waits, within limits."""

from __future__ import annotations

import http.client
import random
import ssl
import threading
import time
from collections import deque
from urllib.parse import unquote, urlsplit

from vmscope import environ
from vmscope.errors import CommandLineError, VMScopeError
from vmscope.export.compression import compressed
from vmscope.export.otlp import CUMULATIVE, DELTA, Encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.export.host import Host

DEFAULT = "http://localhost:4318"
_PATH = "/v1/metrics"
_WAITING = 16  # requests
_WAITING_BYTES = 64 << 20
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds
_ATTEMPTS = 8  # for one request
_RETRIED = (429, 502, 503, 504)
_LAST = 5.0  # seconds for what is left at the end


def _setting(name: str) -> str:
    """OTEL_EXPORTER_OTLP_METRICS_name, or OTEL_EXPORTER_OTLP_name."""
    return environ.get(f"OTEL_EXPORTER_OTLP_METRICS_{name}") or environ.get(f"OTEL_EXPORTER_OTLP_{name}")


class Target:
    """Where to push, and how: an URL, and what the OTEL_ variables say."""

    def __init__(self, url: str = "") -> None:
        if not url:
            base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", DEFAULT).rstrip("/") + _PATH
            url = environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") or base
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise CommandLineError(f"cannot push to {url!r}", hint="use http://HOST:PORT or https://HOST:PORT")
        self.url = url
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        try:
            self.port = parts.port or (443 if self.secure else 80)
        except ValueError:
            raise CommandLineError(f"cannot push to {url!r}", hint="a port has 16 bits") from None
        self.path = (parts.path if parts.path not in ("", "/") else _PATH) + (f"?{parts.query}" if parts.query else "")
        self.headers = _headers(_setting("HEADERS"))
        self.timeout = _milliseconds("TIMEOUT", _setting("TIMEOUT"), 10.0)
        self.gzip = _setting("COMPRESSION") != "none"
        self.interval = _milliseconds("INTERVAL", environ.get("OTEL_METRIC_EXPORT_INTERVAL"), 60.0)
        self.temporality = DELTA if _setting("TEMPORALITY_PREFERENCE").lower() == DELTA else CUMULATIVE
        if _setting("PROTOCOL") not in ("", "http/protobuf"):
            raise CommandLineError(f"cannot push by {_setting('PROTOCOL')}", hint="the protocol is http/protobuf")
        self._context = self._tls() if self.secure else None

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=_setting("CERTIFICATE") or None)
            if _setting("CLIENT_CERTIFICATE"):
                context.load_cert_chain(_setting("CLIENT_CERTIFICATE"), _setting("CLIENT_KEY") or None)
        except (OSError, ssl.SSLError) as error:
            raise VMScopeError(
                f"TLS cannot be set up: {error}", hint="look at OTEL_EXPORTER_OTLP_CERTIFICATE"
            ) from None
        return context

    def connect(self) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self._context)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)


def _headers(text: str) -> dict[str, str]:
    """`key=value,key=value`, percent-encoded."""
    found = {}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        name, value = unquote(name.strip()), unquote(value.strip())
        if pair.strip():
            if not (
                equals and name.isascii() and name.replace("-", "").replace("_", "").isalnum() and value.isprintable()
            ):
                raise CommandLineError("OTEL_EXPORTER_OTLP_HEADERS is not understood", hint="use name=value,name=value")
            found[name] = value
    return found


def _milliseconds(name: str, text: str, default: float) -> float:
    try:
        value = float(text) / 1000 if text else default
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise CommandLineError(f"the variable for {name} is not a time in milliseconds: {text!r}", hint="use 10000")
    return value


class Pusher:
    """Reads a host and pushes what it finds. `problem` is why the last request did not arrive, or ""; `lost` counts."""

    def __init__(self, host: Host, target: Target, version: str = "") -> None:
        self.host = host
        self.target = target
        self.problem = ""
        self.sent = self.lost = 0
        self._version = version
        self._encoder: Encoder | None = None
        self._table: object = None
        self._queue: deque[bytes] = deque()
        self._ready = threading.Condition()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vmscope otlp", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def read(self) -> None:
        """Reads all VMs now, and has it sent."""
        answer = self.host.read()
        if not answer.table.rows:
            return
        if answer.table is not self._table or self._encoder is None:
            resources = self.host.resources(answer.table)
            self._encoder = Encoder(
                answer.table, resources, temporality=self.target.temporality, version=self._version,
                before=self._encoder,
            )  # fmt: skip
            self._table = answer.table
        body = self._encoder.encode(answer.values, answer.taken)
        if self.target.gzip:
            body = compressed(body)
        with self._ready:
            self._queue.append(body)
            while len(self._queue) > _WAITING or (len(self._queue) > 1 and sum(map(len, self._queue)) > _WAITING_BYTES):
                self._queue.popleft()  # the newest say more
                self.lost += 1
            self._ready.notify()

    def close(self) -> None:
        """Sends what is left, for a moment at most."""
        self._ending.set()
        with self._ready:
            self._ready.notify()
        self._thread.join(_LAST)

    # -- on the thread

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._ending.is_set():
                    self._ready.wait()
                if not self._queue:
                    return
                body = self._queue.popleft()
            self._deliver(body)

    def _deliver(self, body: bytes) -> None:
        pause = _FIRST_PAUSE
        for _ in range(_ATTEMPTS):
            retry, wait = self._send(body)
            if not retry:
                return
            # Collectors that come back are not asked by all at once.
            wait = max(wait, pause * random.uniform(0.5, 1.0))
            if self._ending.wait(min(wait, _LONGEST_PAUSE)):
                break
            pause = min(pause * 2, _LONGEST_PAUSE)
        self.lost += 1

    def _send(self, body: bytes) -> tuple[bool, float]:
        """Whether to try again, and after how many seconds at least."""
        headers = {**self.target.headers, "Content-Type": "application/x-protobuf", "User-Agent": "vmscope"}
        if self.target.gzip:
            headers["Content-Encoding"] = "gzip"
        connection = self.target.connect()
        try:
            connection.request("POST", self.target.path, body, headers)
            response = connection.getresponse()
            response.read(1 << 16)
        except (OSError, http.client.HTTPException) as error:
            self.problem = str(error) or type(error).__name__
            return True, 0.0
        finally:
            connection.close()
        if 200 <= response.status < 300:
            self.problem = ""
            self.sent += 1
            return False, 0.0
        self.problem = f"{response.status} {response.reason}"
        if response.status in _RETRIED:
            return True, _retry_after(response.headers.get("Retry-After", ""))
        self.lost += 1
        return False, 0.0


def _retry_after(text: str) -> float:
    """In seconds; a date too."""
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), _LONGEST_PAUSE)
    from email.utils import mktime_tz, parsedate_tz

    try:
        date = parsedate_tz(text[:100])
        return max(0.0, min(mktime_tz(date) - time.time(), _LONGEST_PAUSE)) if date else 0.0
    except (ValueError, OverflowError):  # the collector's text: no date that there is
        return 0.0
