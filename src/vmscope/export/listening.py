"""Where an exporter listens, and under which names it answers."""

from __future__ import annotations

from vmscope.errors import CommandLineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PORTS = 1 << 16
MISDIRECTED = "421 Misdirected Request"
WRONG_HOST = b"this name is not served: ask for the address, or see --allowed-hosts of vmscope export\n"
ANY = "*"


def split(listen: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `[V6]:PORT` or `:PORT`, which is a port of the loopback."""
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and int(port) < PORTS):
        raise CommandLineError(f"cannot listen at {listen!r}", hint="use HOST:PORT or unix:PATH")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def is_address(host: str) -> bool:
    """Whether it is an IP address, not a name."""
    import _socket

    for family in (_socket.AF_INET, _socket.AF_INET6):
        try:
            _socket.inet_pton(family, host)
            return True
        except OSError:
            continue
    return False


class Hosts:
    """Under which names an exporter answers, by the header Host.

    A page in a browser of this host can have its own name lead to the loopback (DNS rebinding), and would then read
    what is served there. So an exporter on the loopback answers to addresses and to this host's own names alone. One
    that listens elsewhere answers to every name, unless some are `given`; so does one that asks for passwords.
    """

    def __init__(self, address: str, given: Iterable[str] = (), *, guarded: bool = False) -> None:
        import _socket

        wanted = {_name(host) for host in given}
        self._any = ANY in wanted or not (wanted or (_is_loopback(address) and not guarded))
        self._names = {"localhost", _socket.gethostname().lower(), *wanted}

    def allow(self, host: str) -> bool:
        """Whether a request with this header is answered. One without it is of no browser."""
        name = _name(host)
        return self._any or not name or name in self._names or name.endswith(".localhost") or is_address(name)


def _name(host: str) -> str:
    """That of `NAME:PORT` or `[V6]:PORT`, in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _is_loopback(address: str) -> bool:
    return address == "::1" or address.removeprefix("::ffff:").startswith("127.")
