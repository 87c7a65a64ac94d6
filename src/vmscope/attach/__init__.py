"""The attach protocol: who may ask a VM to do something, how it is asked, and how it answers."""

from __future__ import annotations
