"""Which processes make one service, and what each of them is there for."""

from __future__ import annotations

from vmscope.services.roles import ROLES, Member, Seen, members

__all__ = ["ROLES", "Member", "Seen", "members"]
