"""Imported by vmscope_follow.pth where `vmscope run` has started this process's parent: a VM with the same options.

`site` prints what is raised here, so nothing may be.
"""

from __future__ import annotations

try:
    from vmscope import environ

    if environ.is_obeyed() and environ.get("VMSCOPE") != "0":
        from vmscope.boot import autostart

        autostart()
except Exception:
    pass
