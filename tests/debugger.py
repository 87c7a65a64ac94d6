"""A debugger's client: enough of the debug adapter protocol to stop a program at breakpoints and look at it."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support import PATIENCE
from tests.wait import wait_for

Message = dict[str, Any]


class Debugger:
    """Connected to an adapter that listens at `port`, or will soon."""

    def __init__(self, port: int) -> None:
        self._socket = connected(port)
        self._socket.settimeout(PATIENCE)
        self._stream = self._socket.makefile("rb")
        self._sent = 0
        self._events: list[Message] = []

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def stops(self, program: Path, breakpoints: Sequence[Message]) -> list[object]:
        """Runs the program to its end; at each stop why, the stack of the program's own frames, and the innermost
        one's numbers. Where a breakpoint has a condition it goes on by one step."""
        self.call("initialize", adapterID="test", pathFormat="path")
        self.send("attach", justMyCode=False)
        self.event("initialized")
        self.call("setBreakpoints", source={"path": str(program)}, breakpoints=breakpoints)
        self.call("configurationDone")
        steps = {each["line"] for each in breakpoints if "condition" in each}
        found: list[object] = []
        while (event := self.event("stopped", "terminated"))["event"] == "stopped":
            thread = event["body"]["threadId"]
            frames = self.call("stackTrace", threadId=thread)["stackFrames"]
            scope = self.call("scopes", frameId=frames[0]["id"])["scopes"][0]["variablesReference"]
            variables = self.call("variables", variablesReference=scope)["variables"]
            stack = [(each["name"], each["line"]) for each in frames if each["source"].get("path") == str(program)]
            numbers = sorted((each["name"], each["value"]) for each in variables if each.get("type") == "int")
            reason = event["body"]["reason"]
            found.append((reason, stack, numbers))
            step = reason == "breakpoint" and stack[0][1] in steps
            self.send("next" if step else "continue", threadId=thread)
        self.send("disconnect")
        return found

    def send(self, command: str, **arguments: object) -> int:
        self._sent += 1
        request = {"seq": self._sent, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self._sent

    def call(self, command: str, **arguments: object) -> Message:
        """What it answers. AssertionError where it refuses."""
        sent = self.send(command, **arguments)
        while True:
            message = self._read()
            if message["type"] == "response" and message["request_seq"] == sent:
                assert message["success"], message
                body: Message = message.get("body", {})
                return body
            if message["type"] == "event":
                self._events.append(message)

    def event(self, *names: str) -> Message:
        """The next one of these; others are kept."""
        for place, message in enumerate(self._events):
            if message["event"] in names:
                return self._events.pop(place)
        while True:
            message = self._read()
            if message["type"] == "event":
                if message["event"] in names:
                    return message
                self._events.append(message)

    def _read(self) -> Message:
        length = 0
        while line := self._stream.readline().strip():
            length = int(line.split(b":")[1])
        assert length, "the adapter has gone"
        message: Message = json.loads(self._stream.read(length))
        return message


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def connected(port: int) -> socket.socket:
    def connect() -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        except OSError:
            return None

    return wait_for(connect, f"nobody listens at {port}")
