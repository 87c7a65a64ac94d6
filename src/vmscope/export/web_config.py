"""TLS and basic authentication, as Prometheus's web-config files have them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import ssl
import threading
from importlib import import_module

from vmscope.errors import VMScopeError
from vmscope.export import yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.export.yaml import Value

_HINT = "see docs/export.md for what of Prometheus's web-config is understood"
_TLS = ("cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version", "max_version")
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENTS = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_PLAUSIBLE = 1 << 10  # characters of a header


class WebConfig:
    """Who may ask, and over what. Without a file: everybody who reaches the address, in the clear."""

    def __init__(self, users: dict[str, str] | None = None, tls: dict[str, str] | None = None) -> None:
        self._users = users or {}
        self._tls = tls or {}
        self._known: set[bytes] = set()  # digests of what was right: a hash takes 50 ms and more
        self._salt = os.urandom(16)
        self._lock = threading.Lock()
        for user, hashed in self._users.items():
            if not hashed.startswith(("$2a$", "$2b$", "$2y$")):
                raise VMScopeError(f"the password of {user!r} is not hashed with bcrypt", hint=_HINT)
        # A password that no user has, at the highest cost here: no answer comes sooner because a user does not exist.
        cost = max((hashed[4:6] for hashed in self._users.values()), default="10")
        self._nobody = f"$2b${cost}$" + "." * 53
        if self._users:
            _bcrypt("", self._nobody)  # where it cannot be had, now is the time to say so

    @property
    def guards(self) -> bool:
        """Whether who asks must know a password, or the name that a certificate has."""
        return bool(self._users or self._tls)

    def context(self) -> ssl.SSLContext | None:
        """For the server's connections; None: no TLS."""
        if not self._tls:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.minimum_version = _VERSIONS[self._tls.get("min_version", "TLS12")]
            if "max_version" in self._tls:
                context.maximum_version = _VERSIONS[self._tls["max_version"]]
            context.load_cert_chain(self._tls["cert_file"], self._tls["key_file"])
            if "client_ca_file" in self._tls:
                context.load_verify_locations(self._tls["client_ca_file"])
            default = "RequireAndVerifyClientCert" if "client_ca_file" in self._tls else "NoClientCert"
            context.verify_mode = _CLIENTS[self._tls.get("client_auth_type", default)]
        except KeyError as error:
            raise VMScopeError(f"tls_server_config does not have or know {error}", hint=_HINT) from None
        except (OSError, ValueError) as error:
            raise VMScopeError(f"TLS cannot be set up: {error}", hint=_HINT) from None
        return context

    def allows(self, authorization: str) -> bool:
        """Whether who sends this header may ask."""
        if not self._users:
            return True
        user, password = _credentials(authorization)
        hashed = self._users.get(user)
        digest = hmac.digest(self._salt, f"{user}\0{password}\0{hashed}".encode(), hashlib.sha256)
        if hashed is not None and digest in self._known:
            return True
        right = _bcrypt(password, hashed or self._nobody) and hashed is not None
        if right:
            with self._lock:
                self._known.add(digest)
        return right


def load(path: str) -> WebConfig:
    """Reads a web-config file. VMScopeError for what is in it and not understood."""
    found = yaml.load(path)
    base = os.path.dirname(os.path.abspath(path))
    for name in found:
        if name not in ("tls_server_config", "basic_auth_users"):
            raise VMScopeError(f"{path}: {name!r} is not understood", hint=_HINT)
    tls = _texts(path, found.get("tls_server_config"))
    for name in tls:
        if name not in _TLS:
            raise VMScopeError(f"{path}: tls_server_config's {name!r} is not understood", hint=_HINT)
        if name.endswith("_file"):
            tls[name] = os.path.join(base, tls[name])
    return WebConfig(_texts(path, found.get("basic_auth_users")), tls)


def _texts(path: str, value: Value | None) -> dict[str, str]:
    if value is None or value == "":
        return {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise VMScopeError(f"{path} does not have names and values where they belong", hint=_HINT)
    return {name: str(each) for name, each in value.items()}


def _credentials(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic" or len(encoded) > _PLAUSIBLE:
        return "", ""
    try:
        user, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return user, password


_crypt_lock = threading.Lock()


def _bcrypt(password: str, hashed: str) -> bool:
    """By the package bcrypt, or the C library's crypt."""
    if "\0" in password:
        return False
    try:
        bcrypt = import_module("bcrypt")
    except ImportError:
        made = _crypt(password.encode()[:72], hashed.encode())
        return hmac.compare_digest(made, hashed.encode())
    try:
        return bool(bcrypt.checkpw(password.encode()[:72], hashed.encode()))
    except ValueError:
        return False


def _crypt(password: bytes, hashed: bytes) -> bytes:
    import ctypes
    from ctypes.util import find_library

    try:
        crypt = ctypes.CDLL(find_library("crypt") or "libcrypt.so.1").crypt
    except (OSError, AttributeError):
        crypt = None
    if crypt is not None:
        crypt.argtypes, crypt.restype = [ctypes.c_char_p, ctypes.c_char_p], ctypes.c_char_p
        with _crypt_lock:
            made = crypt(password, hashed)
        if made and made.startswith(hashed[:4]):
            return bytes(made)
    raise VMScopeError("bcrypt cannot be computed here", hint="python -m pip install bcrypt")
