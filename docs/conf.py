"""How sphinx builds this documentation; `make docs` runs it with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

import vmscope

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
import api_reference

project = "vmscope"
author = "the vmscope developers"
release = version = vmscope.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"vmscope {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_js_files = ["tables.js"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
nitpicky = True
nitpick_ignore_regex = api_reference.NOT_OURS

# The API reference: docs/api, from the docstrings.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
setup = api_reference.setup
