"""`Environment`: one agent's view of the VM, with every function of the tool interface as a method.

The groups of functions stand in modules of their own; each derives from `Base`, which has the state.
"""

from __future__ import annotations

from vmscope.tool.functions.breakpoints import Breakpoints
from vmscope.tool.functions.classes import Classes
from vmscope.tool.functions.extensions import Extensions
from vmscope.tool.functions.fields import Fields
from vmscope.tool.functions.general import General
from vmscope.tool.functions.heap import Heap
from vmscope.tool.functions.local_variables import LocalVariables
from vmscope.tool.functions.methods import Methods
from vmscope.tool.functions.modules import Modules
from vmscope.tool.functions.monitor_info import MonitorInfo
from vmscope.tool.functions.notification import Notification
from vmscope.tool.functions.raw_monitors import RawMonitors
from vmscope.tool.functions.redefinition import Redefinition
from vmscope.tool.functions.settings import Settings
from vmscope.tool.functions.stacks import Stacks
from vmscope.tool.functions.suspension import Suspending
from vmscope.tool.functions.system import System
from vmscope.tool.functions.thread_control import ThreadControl
from vmscope.tool.functions.thread_queries import ThreadQueries
from vmscope.tool.functions.unsupported import Unsupported
from vmscope.tool.sources.field_watches import FieldWatches


class Environment(
    General,
    Notification,
    Breakpoints,
    Extensions,
    System,
    Settings,
    RawMonitors,
    MonitorInfo,
    ThreadQueries,
    ThreadControl,
    Suspending,
    Stacks,
    LocalVariables,
    Classes,
    Fields,
    FieldWatches,
    Methods,
    Modules,
    Redefinition,
    Heap,
    Unsupported,
):
    """Made by `get_env`, in creation order; done with after `dispose_environment`.

    Every function checks, in this order, phase, disposal, capability and arguments, and raises a `ToolError`.
    """
