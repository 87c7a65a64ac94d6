"""What cannot be loaded into this process."""

from __future__ import annotations

from vmscope.errors import OptionError, VMScopeError


class AgentError(VMScopeError, RuntimeError):
    """An agent that cannot be loaded: not found, without an entry point, or it raised or returned no 0.

    `agent` is its name, `reason` the message without that, `status` what it returned, where that is why.
    """

    def __init__(self, agent: str, message: str, *, status: object = None, path: str | None = None) -> None:
        super().__init__(f"agent {agent}: {message}", path=path)
        self.agent = agent
        self.reason = message
        self.status = status


class LibraryError(AgentError):
    """A native agent's library that cannot be loaded, in a JVM's words, which tools look for.

    `loader` is what the system's loader says of it, where that is why.
    """

    def __init__(
        self, agent: str, message: str, *, status: int | None = None, path: str | None = None, loader: str = ""
    ) -> None:
        super().__init__(agent, message, status=status, path=path)
        self.message = message
        self.loader = loader

    def at_start(self) -> str:
        """What is shown when the VM does not come to life for it."""
        return f"Error occurred during initialization of VM\n{self.message}\n"


class InstrumentError(OptionError):
    """A name that no instrument has, or of one that cannot work here."""
