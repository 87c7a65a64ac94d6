"""`Environment`: one agent's view of the VM, with every function of the tool interface as a method.

The groups of functions stand in modules of their own; each derives from `Base`, which has the state.
"""

from __future__ import annotations

from vmscope.tool.breakpoints import Breakpoints
from vmscope.tool.classes import Classes
from vmscope.tool.extensions import Extensions
from vmscope.tool.fields import Fields
from vmscope.tool.general import General
from vmscope.tool.heap import Heap
from vmscope.tool.impossible import Impossible
from vmscope.tool.local_variables import LocalVariables
from vmscope.tool.methods import Methods
from vmscope.tool.modules import Modules
from vmscope.tool.monitor_info import MonitorInfo
from vmscope.tool.notification import Notification
from vmscope.tool.raw_monitors import RawMonitors
from vmscope.tool.redefinition import Redefinition
from vmscope.tool.settings import Settings
from vmscope.tool.stacks import Stacks
from vmscope.tool.suspension import Suspending
from vmscope.tool.system import System
from vmscope.tool.thread_control import ThreadControl
from vmscope.tool.thread_queries import ThreadQueries
from vmscope.tool.watches import FieldWatches


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
    Impossible,
):
    """Made by `get_env`, in creation order; done with after `dispose_environment`.

    Every function checks, in this order, phase, disposal, capability and arguments, and raises a `ToolError`.
    """
