"""`python -m vmscope` is the same as `vmscope`."""

from __future__ import annotations

import sys

from vmscope.cli import main

sys.exit(main())
