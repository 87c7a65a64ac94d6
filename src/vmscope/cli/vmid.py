"""The names that the JDK's tools give to VMs and hosts.

    VM      [proto:][//]lvmid[@host][:port][/server]      or   file:/path
    host    [proto:][[//]host][:port][/server]

Both are URIs (RFC 2396, with the additions that `java.net.URI` makes), read leniently: what is not a URI is tried
again with `//` before it. A VM is local when its scheme is `local`, or when it has neither scheme nor host.
"""

from __future__ import annotations

from vmscope.cli._java import INT_MAX, parse_int
from vmscope.errors import VMIdentifierError, VMScopeError

LOCAL, FILE, REMOTE = "local", "file", "rmi"
LOCALHOST = "localhost"

_UNRESERVED = "-_.!~*'()"
_REGISTRY = _UNRESERVED + "$,;:@&=+"
_PATH = _UNRESERVED + ":@&=+$,;/"
_ANY = _UNRESERVED + ";/?:@&=+$,[]"


class URI:
    """The parts of a URI, decoded, or None where absent. `opaque` is the part after a scheme without a slash."""

    __slots__ = ("authority", "fragment", "host", "opaque", "path", "port", "query", "scheme", "user")

    def __init__(self, text: str) -> None:
        """Raises VMIdentifierError for text that is not a URI."""
        self.scheme: str | None = None
        self.authority: str | None = None
        self.user: str | None = None
        self.host: str | None = None
        self.port = -1
        self.query: str | None = None
        self.opaque: str | None = None
        rest, mark, fragment = text.partition("#")
        self.fragment = _checked(fragment, _ANY, text) if mark else None
        head = min((at for at in map(rest.find, "/?:") if at >= 0), default=-1)
        if head >= 0 and rest[head] == ":":
            self.scheme, rest = _scheme(rest[:head], text), rest[head + 1 :]
            if not rest.startswith("/"):
                if not rest:
                    raise _malformed(text)
                self.opaque = _checked(rest, _ANY, text)
                self.path = ""
                return
        rest, mark, query = rest.partition("?")
        self.query = _checked(query, _ANY, text) if mark else None
        if rest.startswith("//"):
            authority, slash, path = rest[2:].partition("/")
            rest = slash + path
            if authority:
                self._authority(authority, text)
            elif not rest and self.query is None and self.fragment is None:
                raise _malformed(text)
        self.path = _checked(rest, _PATH, text)

    def _authority(self, authority: str, text: str) -> None:
        """[user@]host[:port] where it has that form, else a name that has no parts."""
        user, at, server = authority.rpartition("@")
        host, port = server, ""
        if ":" in server and not server.endswith("]"):
            host, _, port = server.rpartition(":")
        numeric = port.isascii() and port.isdigit() and int(port) <= INT_MAX
        if "@" not in user and _is_host(host) and (numeric or not port):
            self.authority = authority
            self.user = _checked(user, _UNRESERVED + ";:&=+$,", text) if at else None
            self.host = host
            self.port = int(port) if port else -1
        else:
            self.authority = _checked(authority, _REGISTRY, text)


class VMIdentifier:
    """Where a VM is. `lvmid` is its number on the host, 0 for a file; `path` the file's, or None."""

    __slots__ = ("host", "lvmid", "mode", "path", "scheme", "text")

    def __init__(self, text: str) -> None:
        """Raises VMIdentifierError where the text names no VM, and FileURIError."""
        self.text = text
        uri = _vm_uri(text)
        # A number alone reads as a host too.
        self.host = uri.host if uri.host != uri.authority else None
        self.lvmid = 0
        self.path: str | None = None
        self.mode = _mode(uri.query)
        if uri.scheme == FILE:
            self.scheme = FILE
            self.path = _file_path(uri, text)
            return
        self.scheme = uri.scheme or (REMOTE if self.host else LOCAL)
        try:
            self.lvmid = parse_int(uri.user if uri.user is not None else uri.authority or "")
        except ValueError:
            raise _malformed(text) from None
        if self.lvmid == -1:
            raise _malformed(text)


class HostIdentifier:
    """A host whose VMs are to be listed; no text is this one."""

    __slots__ = ("host", "scheme")

    def __init__(self, text: str | None) -> None:
        """Raises VMIdentifierError for text that names no host."""
        uri = _host_uri(text)
        self.host = uri.host or LOCALHOST
        self.scheme = uri.scheme or (LOCAL if self.host == LOCALHOST else REMOTE)


def _vm_uri(text: str) -> URI:
    for attempt in (text,) if text.startswith("//") else (text, "//" + text):
        try:
            return _canonical(attempt)
        except VMIdentifierError:
            continue
    raise _malformed(text)


def _canonical(text: str) -> URI:
    uri = URI(text)
    if uri.opaque is not None:
        tail = "" if uri.fragment is None else "#" + uri.fragment
        return URI(f"{uri.scheme}://{uri.opaque}{tail}")
    if uri.scheme is None and not text.startswith("//"):
        return URI("//" + text)
    return uri


def _host_uri(text: str | None) -> URI:
    if text is None or text == LOCALHOST:
        return URI("//" + LOCALHOST)
    if not text:
        raise _malformed(text)
    if text[0].isdigit():
        text = "//" + text
    uri = URI(text)
    if uri.opaque is not None:
        # "host:port" reads as a scheme and a number.
        return URI(f"{uri.scheme}://{uri.opaque}" if text.count(":") > 1 else "//" + text)
    if uri.scheme is None and not text.startswith("//"):
        return URI("//" + text)
    return uri


def _mode(query: str | None) -> str:
    for part in (query or "").split("+"):
        if part.startswith("mode="):
            return part[5:]
    return "r"


def _file_path(uri: URI, text: str) -> str:
    """The file that a file: URI names; it can have nothing but a path."""
    for part, value in (("authority", uri.authority), ("fragment", uri.fragment), ("query", uri.query)):
        if value is not None:
            raise FileURIError(f"URI has {'an' if part[0] == 'a' else 'a'} {part} component", path=text)
    if not uri.path:
        raise FileURIError("URI path component is empty", path=text)
    return uri.path


class FileURIError(VMScopeError, ValueError):
    """A file: URI that names no file: jstat dies of it, where for other bad identifiers it shows its usage."""


def _malformed(text: str) -> VMIdentifierError:
    return VMIdentifierError(f"Malformed VM Identifier: {text}")


def _scheme(name: str, text: str) -> str:
    if not (name and name[0].isascii() and name[0].isalpha()) or not _consists_of(name, "+-."):
        raise _malformed(text)
    return name


def _consists_of(part: str, others: str) -> bool:
    return all((char.isascii() and char.isalnum()) or char in others for char in part)


def _is_host(host: str) -> bool:
    if host.startswith("["):
        return host.endswith("]") and ":" in host and "]" not in host[:-1]
    labels = host.split(".")
    if len(labels) == 4 and all(label.isascii() and label.isdigit() and int(label) < 256 for label in labels):
        return True
    if not labels[-1]:
        labels.pop()
    if not labels or not all(
        label and _consists_of(label, "-") and label[0] != "-" and label[-1] != "-" for label in labels
    ):
        return False
    return len(labels) == 1 or labels[-1][0].isalpha()


def _checked(part: str, others: str, text: str) -> str:
    """The part with its %XX escapes decoded; other characters must be letters, digits, these or not ASCII."""
    pieces = part.split("%")
    data = bytearray()
    for index, piece in enumerate(pieces):
        if index:
            digits = piece[:2]
            if len(digits) != 2 or not all(char in "0123456789abcdefABCDEF" for char in digits):
                raise _malformed(text)
            data.append(int(digits, 16))
            piece = piece[2:]
        for char in piece:
            if char.isascii() and not char.isalnum() and char not in others:
                raise _malformed(text)
        data += piece.encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "surrogateescape")
