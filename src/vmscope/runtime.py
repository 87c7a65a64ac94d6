"""The life of this process as a VM: start, fork, exit.

Nothing here prints, raises into the program after `start`, or holds up its end.
"""

from __future__ import annotations

import atexit
import os
import sys
from _thread import RLock

from vmscope import __version__, native
from vmscope import flags as vm_flags
from vmscope.counters import identity
from vmscope.counters.registry import REGISTRY
from vmscope.counters.standard import Standard
from vmscope.errors import DiskFull, VMScopeError
from vmscope.memory.region import Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.flags import Flags

_STOP_TIMEOUT = 200_000_000  # ns: the longest that a stuck disk may hold up the end of the process
_CHILD_DELAY = 20_000_000  # ns: most forked children exec or end before they are worth a file


class Status:
    """What `vmscope.status()` tells.

    `running`; `path` of the region's file or None; `reason` why there is none, or ""; `capacity`, `used` and
    `overflow` in bytes; `flags`, the VM options in force; `implementation`, "c" or "python"; `log`, what happened.
    """

    __slots__ = ("capacity", "flags", "implementation", "overflow", "path", "reason", "running", "used")

    def __init__(self, vm: VirtualMachine) -> None:
        region = vm.region
        self.running = vm.running
        self.path = None if region is None or region.file is None else region.file.path
        self.reason = vm.reason
        self.capacity = 0 if region is None else region.capacity
        self.used = 0 if region is None else region.used
        self.overflow = 0 if region is None else region.overflow
        self.flags = vm.flags
        self.implementation = native.IMPLEMENTATION

    def __repr__(self) -> str:
        return " ".join(["<vmscope.Status", *(f"{name}={getattr(self, name)!r}" for name in self.__slots__)]) + ">"


class VirtualMachine:
    """This process. One object, `VM`; its methods are `vmscope.start`, `stop` and `status`."""

    def __init__(self) -> None:
        self.running = False
        self.region: Region | None = None
        self.reason = "vmscope.start() was not called"
        self.flags: Flags = vm_flags.Flags()
        self._standard: Standard | None = None
        self._hooked = False
        self._lock = RLock()

    def start(self, *options: str, command: str | None = None) -> None:
        """Publishes this process, with VM options as on the command line. A second call does nothing.

        Raises OptionError for a bad option. Where no region can be made the counters work all the same, and
        `status().reason` says why.
        """
        with self._lock:
            if self.running:
                return
            self.flags = vm_flags.parse(options)
            self.running = True
            self.reason = ""
            if not self.flags.on("UsePerfData"):
                self.reason = "switched off by -XX:-UsePerfData"
                return
            self._hook()
            self._open(command)

    def _open(self, command: str | None) -> None:
        try:
            region = Region(self.flags.number("PerfDataMemorySize"))
        except MemoryError:
            self.reason = "no memory for the region"
            return
        self.region = region
        limit = self.flags.number("PerfMaxStringConstLength")
        if self._standard is None:
            self._standard = Standard(
                REGISTRY,
                identity.constants(
                    identity.command_line() if command is None else command,
                    " ".join(self.flags.arguments),
                    __version__,
                    native.IMPLEMENTATION,
                ),
                limit,
            )
        self._standard.stamp()
        self._standard.begin(count_past=True)
        REGISTRY.attach(region, self._standard.all)
        region.mirror.set_clock(self._standard.clock)
        region.mirror.refresh()
        region.set_accessible()
        self._publish()
        if region.file is not None:
            region.mirror.start(self._interval)

    @property
    def _interval(self) -> int:
        return self.flags.number("PerfDataSamplingInterval") * 1_000_000

    def _publish(self) -> None:
        """Gives the region a file, or notes why it has none."""
        region = self.region
        if region is None:
            return
        if self.flags.on("PerfDisableSharedMem"):
            self.reason = "switched off by -XX:+PerfDisableSharedMem"
            return
        try:
            region.publish()
        except (VMScopeError, OSError) as error:
            self.reason = str(error)
            _log("warning" if isinstance(error, DiskFull) else "debug", "no shared region: %s", error)
            return
        assert region.file is not None
        _log("debug", "region %s: %d bytes, %d in use", region.file.path, region.capacity, region.used)

    # -- the end

    def stop(self) -> None:
        """Saves the region where asked, takes its file away, and goes on counting on private memory."""
        with self._lock:
            if not self.running:
                return
            self.running = False
            region, self.region = self.region, None
            self.reason = "vmscope.stop() was called"
            if self._standard is not None:
                self._standard.end()
            REGISTRY.detach()
            if region is None:
                return
            copied = region.mirror.stop(_STOP_TIMEOUT)
            self._save(region)
            if region.file is not None and copied:  # else its disk is stuck, and unlink would be too
                try:
                    region.file.unlink()
                except VMScopeError as error:
                    _log("debug", "%s", error)

    def _save(self, region: Region) -> None:
        name = self.flags.text("PerfDataSaveFile")
        if not name and not self.flags.on("PerfDataSaveToFile"):
            return
        path = (name or "hsperfdata_%p").replace("%p", str(os.getpid()))
        try:
            region.mirror.save(os.fsencode(path))
        except OSError as error:
            _log("warning", "the region cannot be saved: %s", error)

    # -- fork

    def _hook(self) -> None:
        if not self._hooked:
            self._hooked = True
            atexit.register(self.stop)
            os.register_at_fork(
                before=native.before_fork,
                after_in_parent=native.after_fork_in_parent,
                after_in_child=self._after_fork,
            )

    def _after_fork(self) -> None:
        """In a forked child: nothing of the parent's is touched; a region of its own follows a moment later."""
        self._lock = RLock()
        REGISTRY.after_fork()
        region = self.region
        if region is None or not self.running:
            return
        shared = region.file is not None
        region.after_fork()
        if "%p" not in self.flags.text("PerfDataSaveFile"):
            self.flags.forget("PerfDataSaveFile")  # the parent's exit writes that file
        if shared:
            self.reason = "a forked child: its region appears a moment after the fork"
            region.mirror.start(self._interval, _CHILD_DELAY, self._publish_child)

    def _publish_child(self) -> None:
        if self._standard is not None:
            self._standard.stamp()
        self.reason = ""
        if self.region is not None:
            self.region.mirror.refresh()
        self._publish()
        finalizers = sys.modules.get("multiprocessing.util")
        if finalizers is not None:  # its children end with os._exit, without atexit
            finalizers.Finalize(None, self.stop, exitpriority=0)

    def status(self) -> Status:
        """Whether this process is published, where, and why not."""
        return Status(self)


def _log(level: str, message: str, *arguments: object) -> None:
    """Logs where the program has loaded logging; where it has not, nobody could have asked to see it."""
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger("vmscope")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    getattr(logger, level)(message, *arguments)


VM = VirtualMachine()
start, stop, status = VM.start, VM.stop, VM.status
