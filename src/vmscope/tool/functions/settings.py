"""The functions that read and set what holds for the whole VM: properties, verbose flags, the sampling of the heap."""

from __future__ import annotations

from vmscope.tool import properties, verbose
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.spec.errors import NotAvailable
from vmscope.tool.verbose import VerboseFlag


class Settings(Base):
    @function
    def get_system_properties(self) -> list[str]:
        """The names of all properties.

        CPython: those of `-D`, and the JVM's names for what Python says of itself and its system.
        """
        return list(properties.properties())

    @function
    def get_system_property(self, property: str) -> str:
        """Its value. NotAvailable when it has none.

        CPython: sys, os and `-D`; asked for anew each time.
        """
        value = properties.properties().get(property)
        if value is None:
            raise NotAvailable(f"no system property is called {property}")
        return value

    @function
    def set_system_property(self, property: str, value: str | None) -> None:
        """None takes back what was set. NotAvailable for one that says what this VM or its system is.

        CPython: as if it were given by `-D`.
        Differs: a JVM refuses one that it does not know.
        """
        if not properties.set_property(property, value):
            raise NotAvailable(f"{property} says what this VM is, and cannot be changed")

    @function
    def set_verbose_flag(self, flag: VerboseFlag, value: bool | int) -> None:
        """Lets the VM report its collections, imports or extension modules on standard error, or keeps it silent.
        Nothing comes of OTHER.

        CPython: gc.DEBUG_STATS; a finder that finds nothing, first in sys.meta_path; _imp.create_dynamic, wrapped.
        """
        verbose.set_flag(flag, bool(value))

    @function
    def set_heap_sampling_interval(self, sampling_interval: int) -> None:
        """SampledObjectAlloc is sent, on average, once in this many bytes of new objects; 0: for each. First 512 KiB.

        CPython: the next sample's distance is drawn at random, from 0 to twice as much.
        Differs: what an object has beside itself, as a list's items, does not count.
        """
        self.host.sampling_interval = sampling_interval
        self.host.changed()
