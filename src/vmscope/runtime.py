"""The life of this process as a VM: start, fork, exit.

Nothing here prints, raises into the program after `start`, or holds up its end.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock
from errno import EIO

from vmscope import __version__, environ, native, own_threads
from vmscope import flags as vm_flags
from vmscope.counters import identity
from vmscope.counters.registry import REGISTRY
from vmscope.counters.standard import Standard
from vmscope.errors import DiskFull, OptionError, VMScopeError
from vmscope.memory.region import Region

if sys.platform != "win32":
    from vmscope import termination

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import FrameType, ModuleType

    from vmscope.flags import Flags
    from vmscope.process_status import Status

_STOP_TIMEOUT = 1_000_000_000  # ns: the longest that a stuck disk may hold up the end of the process
_MS = 1_000_000  # ns
_MIRROR_INTERVAL = 50 * _MS  # where there is no sampler
_MOST_PROBLEMS = 8
_LOCK_TIMEOUT = 1.0  # s: a program that starts or stops at this very moment is soon done


class VirtualMachine:
    """This process. One object, `VM`; its methods are `vmscope.start`, `stop` and `status`."""

    def __init__(self) -> None:
        self.running = False
        self._whole = True  # nothing is half made or half ended, as after an exception in the middle of that
        self._change: FrameType | None = None  # the call of `_exclusively` that is under way
        self.region: Region | None = None
        self.problems: list[str] = []  # see note_problem
        self.no_room: DiskFull | None = None  # why there is no file, where the disk is full
        self._notice: native.lock_mapping | None = None  # of why there is none
        self.unsaved = ""  # why a save that was asked for failed
        self._parents: Region | None = None  # in a forked child, until it makes its own
        self.reason = self.attach_reason = "vmscope.start() was not called"
        self.listener: native.Listener | None = None
        self.socket_path = ""
        self.flags: Flags = vm_flags.Flags()
        self._inherited = 0  # how many agents of the environment's have been loaded
        self._armed = False
        self._standard: Standard | None = None
        self._hooked = False
        self._lock = RLock()
        self.autostarted = False  # then the program has asked for nothing, and reads nothing about it
        self._silent = False
        self.keeper: ModuleType | None = None  # where the service has a name of its own
        self._folder = ""  # where it was when it started, as far as that is known

    def start(self, *options: str, program: tuple[str, str] | None = None, agents: bool = True) -> None:
        """Publishes this process, with VM options as on the command line. A second call does nothing.

        ::

            vmscope.start("-XX:PerfDataMemorySize=64k", "-Dshop.mode=test")

        Agents that they name attach, as the program runs already; an error there is logged. Without `agents` the
        caller loads them (`load_agents`).

        Raises OptionError for a bad option (InstrumentError for a bad instrument), CounterExistsError where the
        program has a counter of a standard one's name. Where no region can be made the counters still work,
        and `status().reason` says why.
        """
        if not self.running or not self._whole:
            flags = vm_flags.parse(options)
            if self._exclusively(lambda: self._start_with(flags, program)) and agents:
                self._load_agents(early=False)

    def _exclusively(self, change: Callable[[], bool]) -> bool:
        """Calls what starts or ends the VM, while nothing else does; what it says.

        False, and no call, within another such call: in a handler of a signal that came in the middle of it. What an
        exception has left half made or half ended is ended first, so a change has to leave everything in a state in
        which `_stop` can end it.
        """
        with self._lock:
            if self._change is not None and _is_calling(self._change):
                return False
            self._change = sys._getframe()
            try:
                if not self._whole:
                    self._stop()
                return change()
            finally:
                self._change = None

    def _start_with(self, flags: Flags, program: tuple[str, str] | None) -> bool:
        """False where it runs already."""
        if self.running:
            return False
        self._set_flags(flags)
        self._instrument(self.flags.text("Instrument"))
        try:
            self._whole, self.running = False, True
            self._folder = _current_folder()
            self._start(program)
            self._settle()
            self._whole = True
        except BaseException:
            self._stop()
            raise
        return True

    def _set_flags(self, flags: Flags) -> None:
        if self._inherited:  # agents, loaded before the region, may have set properties
            flags.properties.update(vm_flags.in_force.properties)
        self.flags = vm_flags.in_force = flags

    def flag_changed(self, name: str) -> None:
        """A flag that is WRITEABLE has another value. OptionError where that cannot come true."""
        if not self._lock.acquire(timeout=_LOCK_TIMEOUT):
            raise OptionError(f"flag {name}: the VM is just starting or stopping; try again")
        try:
            if self.running and name == "Instrument":
                self._instrument(self.flags.text(name))
            elif self.region is not None and name == "PerfDataSamplingInterval":
                self._change_interval(self.region)
            elif self.region is not None:  # where and whether to save
                self._disarm()
                self._arm(self.region)
        finally:
            self._lock.release()

    def _change_interval(self, region: Region) -> None:
        if self._standard is not None:
            self._standard.rest()
        if region.file is not None and region.mirror.stop(_STOP_TIMEOUT):
            self._start_mirror(region)
        self._start_sampler(region)

    def load_agents(self, *, shown: bool = False) -> None:
        """Loads the agents that the options name, before the program begins. AgentError, and then nothing runs on.

        `shown`: standard error is that of who named them, and shows what goes wrong in them later.
        """
        try:
            self._load_agents(early=True, shown=shown)
        except BaseException:
            self.stop()
            raise

    def load_inherited_agents(self) -> None:
        """The same before anything has started, for those that the environment names: what fails is a problem."""
        try:
            self._set_flags(vm_flags.parse(()))
        except OptionError as error:
            self.note_problem(str(error))
            return
        named, self._inherited = self.flags.agents[self._inherited :], self.flags.inherited
        if named:
            from vmscope.tool import agents

            for failed in agents.start_inherited(named):
                self.note_problem(str(failed))

    def note_problem(self, text: str) -> None:
        """What does not work and ends nothing: for `status()`, and for `vmscope ps` in the region."""
        if text not in self.problems and len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(text)
            if self._standard is not None:
                self._standard.set_problem(text)

    def _load_agents(self, early: bool, shown: bool = False) -> None:
        """A program without agents does not import `tool`; the lock is free while an agent's code runs."""
        named = self.flags.agents[self._inherited :]
        self._inherited = self.flags.inherited
        if named:
            from vmscope.tool import agents

            if early:
                agents.start(named, shown=shown)
            else:
                for failed in agents.attach(named):
                    self.note_problem(str(failed))

    def autostart(self) -> None:
        """start() for a program that has not called it, on a thread of our own: no word, no error."""
        if self._lock.acquire(timeout=_LOCK_TIMEOUT):
            try:
                if not self.running and self._whole:
                    self.autostarted = True
                    self._autostart()
            except VMScopeError as error:
                self.reason = f"autostart: {error}"
            finally:
                self.autostarted &= self.running
                self._lock.release()

    def _autostart(self) -> None:
        """With the options of the environment; where they are not valid, without them."""
        try:
            self.start(agents=False)
        except OptionError as error:
            self.note_problem(f"{environ.OPTIONS} is not obeyed: {error}")
            self._exclusively(lambda: self._start_with(vm_flags.Flags(), None))

    def _instrument(self, names: str) -> None:
        if names or "vmscope.instruments" in sys.modules:
            from vmscope import instruments

            instruments.resume()
            instruments.instrument(*(names.split(",") if names else ()))

    def _start(self, program: tuple[str, str] | None) -> None:
        if not native.in_main_interpreter():
            self.reason = "a process has one region, its main interpreter's: this is a sub-interpreter"
            self.attach_reason = "a process has one socket, its main interpreter's: this is a sub-interpreter"
            return
        if self._service() and self.flags.on("UsePerfData") and sys.platform != "win32":
            from vmscope.memory import keeper

            self.keeper = keeper
        self._hook()
        own_threads.at_exit_of_worker(self.exit)
        self._listen()
        if not self.flags.on("UsePerfData"):
            self.reason = "switched off by -XX:-UsePerfData"
            return
        self._standard = Standard(REGISTRY)
        self._standard.make(
            identity.constants(
                program or (identity.command_line(), identity.class_path()),
                " ".join(self.flags.arguments),
                __version__,
                native.IMPLEMENTATION,
                native.TWIN_REASON,
                self._service(),
            ),
            self.flags.number("PerfMaxStringConstLength"),
        )
        self._standard.begin()
        region = self._make_region()
        if region is not None:
            self._open(region)
        self._export()
        self._record()

    def _record(self) -> None:
        """A program that does not ask for a flight recording does not pay for it."""
        options, asked = self.flags.text("FlightRecorderOptions"), self.flags.recordings
        if options or asked:
            from vmscope.commands import jfr_configure, jfr_start

            try:
                jfr_configure.configure_at_start(options)
                for each in asked:
                    jfr_start.start(each, blank=",")
            except (VMScopeError, OSError) as error:
                self.note_problem(f"no flight recording: {error}")

    def _export(self) -> None:
        """A program that does not ask for the exporter does not pay for it."""
        address = self.flags.text("Export")
        if address:
            from vmscope.export import inside

            try:
                inside.start(address)
            except VMScopeError as error:
                self.note_problem(str(error))

    def _listen(self) -> None:
        """Opens the socket for clients: before the region, which says whether there is one."""
        self.attach_reason = ""
        if self.flags.on("DisableAttachMechanism"):
            self.attach_reason = "switched off by -XX:+DisableAttachMechanism"
            return
        if sys.platform == "win32":
            self.attach_reason = "clients cannot attach on Windows: no named pipe is served"
            return
        self.socket_path = path = f"/tmp/.java_pid{os.getpid()}"  # TMPDIR or not: the JDK's tools look nowhere else
        self.listener = native.Listener(_serve, self._note_limit)
        try:
            self.listener.open(os.fsencode(path), os.fsencode(f"{path}.tmp"))
        except (OSError, MemoryError, RuntimeError) as error:
            self._refuse(error)

    def _note_limit(self, limit: str) -> None:
        """A client was denied because threads differ in their rights: for `vmscope ps`. `status()` looks by itself."""
        if self._standard is not None and not self.problems:
            self._standard.set_problem(limit)

    def _settle(self) -> None:
        """Waits until clients can connect, or notes why they cannot."""
        try:
            if self.listener is not None:
                self.listener.settle()
                if not self.flags.on("ReduceSignalUsage"):
                    native.take_attach_signal()
        except OSError as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        from vmscope.process_status import why_no_socket

        self.listener, self.attach_reason = None, why_no_socket(error, self.socket_path)
        self._log("debug", "no socket to attach to: %s", self.attach_reason)

    def _stop_listening(self, *, last: bool, unlink: bool) -> None:
        if self.listener is not None:
            self.attach_reason = "vmscope.stop() was called"
            if not last:
                native.leave_attach_signal()
            self.listener.close(_STOP_TIMEOUT, last, unlink)
            self.listener = None

    def _make_region(self) -> Region | None:
        self.reason = ""
        try:
            self.region = Region(self.flags.number("PerfDataMemorySize"), self.flags.number("PerfDataMemoryLimit"))
        except MemoryError:
            self.region, self.reason = None, "no memory for the region"
        return self.region

    def _open(self, region: Region) -> None:
        """Fills the region, and lets others see it and what becomes of it."""
        assert self._standard is not None
        self._settle()
        self._standard.set_attachable(self.listener is not None)
        self._standard.set_problem(self.problems[0] if self.problems else "")
        self._standard.stamp()
        REGISTRY.attach(region, self._standard.all)
        region.mirror.set_clock(self._standard.clock)
        region.mirror.refresh()
        region.set_accessible()
        self._publish(region)
        self._arm(region)  # first of all: a crash on another thread may come now
        if region.file is not None:
            self._start_mirror(region)
            if self.listener is not None:
                self.listener.watch_children(os.fsencode(os.path.dirname(region.file.path)))
        self._start_sampler(region)

    def _publish(self, region: Region) -> None:
        """Gives the region a file, or notes why it has none."""
        if self.flags.on("PerfDisableSharedMem"):
            self.reason = "switched off by -XX:+PerfDisableSharedMem"
            return
        try:
            self._notice = None
            region.publish(direct=not self.flags.on("PerfDataMirror"))
        except (VMScopeError, OSError, MemoryError) as error:
            self.reason = str(error) or "no memory for the region's file"
            self.no_room = error.with_traceback(None) if isinstance(error, DiskFull) else None
            self._post_notice()
            self._log("warning" if isinstance(error, DiskFull) else "debug", "no shared region: %s", self.reason)
            return
        assert region.file is not None
        for note in region.file.notes:
            self._log("warning", "%s", note)
        self._log("debug", "region %s: %d bytes, %d in use", region.file.path, region.capacity, region.mirror.used)

    def _post_notice(self) -> None:
        """`vmscope ps --all` shows the reason, also where /tmp is read-only."""
        if sys.platform != "win32":
            try:
                from vmscope.wire import notice

                with native.Descriptor(os.memfd_create, notice.name(self.reason)) as fd:
                    os.ftruncate(fd, 1)  # the twin maps nothing beyond a file's end
                    self._notice = native.lock_mapping(fd, 1)
            except (OSError, ImportError):  # no descriptor, no memory, or the package is out of reach
                pass

    def _start_mirror(self, region: Region) -> None:
        interval = self.flags.number("PerfDataSamplingInterval") * _MS
        try:
            region.mirror.start(interval or _MIRROR_INTERVAL, self._lose)
        except OSError as error:
            self.reason = f"no thread can be started to keep the region current: {error.strerror}"
            self._log("debug", "no shared region: %s", self.reason)
            self._unlink(region)
            if not self._save_path():
                self._disarm()

    def _arm(self, region: Region, *, stays: bool = True) -> None:
        """From now on a crash does what is left to do. A file whose numbers belong to totals stays."""
        path = self._save_path()
        if region.file is None and not path:
            return
        try:
            self._armed = True
            native.arm(region.mirror, path, stays and self.keeper is not None)
        except OSError as error:  # a path that the kernel does not take
            self._armed = False
            self._log("debug", "no fatal path: %s", error)

    def _disarm(self) -> None:
        if self._armed:  # else it may be that of another interpreter in this process
            native.disarm()
            self._armed = False

    def survived(self) -> bool:
        """Whether a signal that ends processes came, was acted on, and did not end this one."""
        return self._armed and not native.is_armed()

    def _start_sampler(self, region: Region) -> None:
        interval = self.flags.number("PerfDataSamplingInterval") * _MS
        if not interval or self._standard is None or (region.file is None and not self._save_path()):
            return  # what it finds would be seen nowhere
        try:
            self._standard.watch(interval)
        except (OSError, RuntimeError) as error:  # RuntimeError: another interpreter of this process has one
            self._log("debug", "no thread can be started to sample counters: %s", error)

    # -- the end

    def exit(self) -> None:
        """The end of the process: its agents get VMDeath, then the region goes."""
        try:
            # A command may be importing it at this moment, and then it is half there.
            getattr(sys.modules.get("vmscope.tool.host"), "end", int)()
        except Exception as error:
            self._log("error", "VMDeath could not be sent to the agents: %s", error)
        finally:
            self._end(last=True)

    def stop(self) -> None:
        """Saves the region where asked, takes its file away, and goes on counting on private memory."""
        self._end(last=False)

    def _end(self, *, last: bool) -> None:
        own_threads.cancel()
        if last:  # whatever is under way on this thread does not go on
            with self._lock:
                self._stop(last=True)
        else:
            self._exclusively(self._stop)

    def _stop(self, *, last: bool = False) -> bool:
        """Ends what there is, also what was left half made or half ended: each step may be done twice, and forgets
        what it has ended when that is over. False where there was nothing to end."""
        if not self.running and self._whole:
            return False
        self._whole = self.running = False
        region = self.region
        if self._standard is not None:
            self._standard.rest(last=bool(self._save_path()))
        # else its disk is stuck, and unlink would be too
        copied = region is None or region.mirror.stop(_STOP_TIMEOUT)
        self._stop_listening(last=last, unlink=copied)
        REGISTRY.detach()
        if self._standard is not None:
            self._standard.end()
            self._standard = None
        self.reason = "vmscope.stop() was called"
        if region is not None:
            self._save(region)
        kept = not last or self._keep()
        if region is not None:
            if copied and kept:
                self._unlink(region)
                if own_threads.had_children():
                    region.clean()
            self.region = None
        self.keeper = None
        if self.flags.text("Export") and "vmscope.export.inside" in sys.modules:
            sys.modules["vmscope.export.inside"].stop()
        if "vmscope.flight.recordings" in sys.modules:
            sys.modules["vmscope.flight.recordings"].RECORDER.exit()
        self._disarm()
        self._notice = None
        if sys.platform != "win32":
            termination.leave()
        if "vmscope.instruments" in sys.modules:
            sys.modules["vmscope.instruments"].suspend()
        self.autostarted = False
        self._whole = True
        return True

    def _service(self) -> str:
        """The name that its service has of its own; "": none."""
        return self.flags.properties.get("vmscope.service", "")

    def _keep(self) -> bool:
        """Adds what was counted to the service's totals. False where that cannot be now: then the file stays, and
        whoever comes by later adds it."""
        if self.keeper is None:
            return True
        try:
            ended = os.getpid(), *identity.started()
            began = identity.start_time(ended[1])
            self.keeper.fold(self._service(), REGISTRY.numbers(), ended, began)
        except (VMScopeError, OSError, MemoryError) as error:
            self._log("debug", "the totals of the service lack this process: %s", error)
            return False
        return True

    def _end_at_once(self, *_: object) -> None:
        """os._exit: the totals first, which takes Python code."""
        if self.keeper is not None and self.running:
            own_threads.cancel()  # nothing is published any more
            if self._keep() and self.region is not None:
                self._arm(self.region, stays=False)
        native.end_region()

    def _unlink(self, region: Region) -> None:
        try:
            region.unlink()
        except VMScopeError as error:
            self._log("debug", "%s", error)

    def _save_path(self) -> bytes:
        """Where to save; empty: nowhere."""
        name = self.flags.text("PerfDataSaveFile")
        if not name and self.flags.on("PerfDataSaveToFile"):
            name = "hsperfdata_%p"
        if not name:
            return b""
        path = "%".join(part.replace("%p", str(os.getpid())) for part in name.split("%%"))
        return os.fsencode(os.path.join(self._folder, path))

    def _save(self, region: Region) -> None:
        path = self._save_path()
        if not path:
            return
        try:
            region.mirror.save(path)
        except OSError as error:
            self.unsaved = f"the region cannot be saved to {os.fsdecode(path)}: {error.strerror}"
            self._log("warning", "%s", self.unsaved)

    # -- fork

    def _hook(self) -> None:
        own_threads.at_exit(self.exit)
        if not self._hooked:
            own_threads.in_child(self._after_fork)
            self._hooked = True
        if sys.platform != "win32":
            if native.IMPLEMENTATION == "c" and not self.flags.on("ReduceSignalUsage"):
                termination.take_signals(self.exit)  # the twin's would show in signal.getsignal
            termination.watch_calls(self._reappear, self._end_at_once if self.keeper is not None else native.end_region)

    def _reappear(self) -> None:
        """After an exec that failed: the region's file and the socket are made anew."""
        if self._lock.acquire(timeout=_LOCK_TIMEOUT):
            try:
                region = self.region
                if self.running and region is not None and region.file is not None and self.survived():
                    self._stop_listening(last=False, unlink=True)
                    self._listen()
                    self._renew(region)
                    self._settle()
            finally:
                self._lock.release()

    def _renew(self, region: Region) -> None:
        """Another file for the one that is gone."""
        if region.mirror.stop(_STOP_TIMEOUT):
            self._unlink(region)
            self._publish(region)
            self._arm(region)
            if region.file is not None:
                self._start_mirror(region)

    def _lose(self) -> None:
        """On the mirror's thread, which is to do nothing else: the file is gone, or cut short."""
        if self.survived():  # the end of the process has removed it, or an exec, which calls `_reappear` if it fails
            return
        own_threads.without_collection(lambda: own_threads.call(self._publish_again, listens=False))

    def _publish_again(self) -> None:
        """Silently, as in a forked child. What has taken the file's place is left alone."""
        if self._lock.acquire(timeout=_LOCK_TIMEOUT):
            silent, self._silent = self._silent, True
            try:
                region = self.region
                if self.survived():  # meanwhile
                    return
                if self.running and self._whole and region is not None and region.file is not None:
                    self._replace(region, region.file.path)
            finally:
                self._silent = silent
                self._lock.release()

    def _replace(self, region: Region, path: str) -> None:
        short = region.mirror.error == EIO
        what = "was cut short" if short else "was removed"
        if not short and os.path.lexists(path):
            what = "was removed, and another file stands there: stop() and start() publish this process again"
        elif not self.flags.on("PerfDataMirror"):
            what += ", and -XX:-PerfDataMirror keeps to it: stop() and start() publish this process again"
        else:
            self._renew(region)
            what += " by another program: " + (self.reason or "it was made anew")
        self.note_problem(f"{path} {what}")

    def _after_fork(self) -> None:
        """In a forked child: nothing of the parent's is touched; a region of its own follows a moment later."""
        self._lock = RLock()
        self._disarm()
        self._parents, self.region = self.region, None
        if self._parents is not None and self._parents.file is not None:
            self._parents.file.abandon()
        self.listener = None
        if not self.running:
            return
        if self._standard is not None:
            self._standard.after_fork()
        save = self.flags.text("PerfDataSaveFile")
        if save and "%p" not in save:
            self.flags.forget("PerfDataSaveFile")  # the parent's exit writes that file
        own_threads.at_exit_of_forked_worker(self.exit)
        if self._standard is not None:
            self.reason = "a forked child: its region appears a moment after the fork"
        self.attach_reason = "a forked child: its socket appears a moment after the fork"
        try:
            own_threads.call(self._open_child, listens=not self.flags.on("DisableAttachMechanism"))
        except OSError as error:
            self.reason = f"no thread can be started to make the region: {error.strerror}"
            self.attach_reason = f"no thread can be started to make the socket: {error.strerror}"

    def _open_child(self) -> None:
        """Opens it, silently: the program would not expect its handlers of logging to be called on this thread."""
        if self._lock.acquire(timeout=_LOCK_TIMEOUT):
            silent, self._silent = self._silent, True
            try:
                self._parents = None  # not before: most children end or exec without paying for it
                if self.running and self.listener is None:
                    self._listen()
                if self.running and self.region is None and self._standard is not None:
                    region = self._make_region()
                    if region is not None:
                        self._open(region)
                self._settle()
            finally:
                self._silent = silent
                self._lock.release()

    def status(self) -> Status:
        """Whether this process is published, where, and why not."""
        from vmscope.process_status import Status

        return Status(self)

    def _log(self, level: str, message: str, *arguments: object) -> None:
        """Logs where the program may have asked to see it; other programs pay nothing for it."""
        if "logging" in sys.modules and not self._silent and not self.autostarted:
            try:
                from vmscope import log
            except ImportError:  # out of reach, as after chroot
                return
            log.say(level, message, *arguments, depth=2)


def _is_calling(frame: FrameType) -> bool:
    """Whether this thread is within that call."""
    each: FrameType | None = sys._getframe()
    while each is not None and each is not frame:
        each = each.f_back
    return each is not None


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed, or may not be looked at
        return ""


def _serve(call: native.Call) -> Iterator[None]:
    return own_threads.steps_without_collection(_answer(call))


def _answer(call: native.Call) -> Generator[None, None, None]:
    """The commands are imported with the first request."""
    from vmscope.commands import operations

    yield from operations.serve(call)


VM = VirtualMachine()
vm_flags.on_change = VM.flag_changed
start, stop, status = VM.start, VM.stop, VM.status
