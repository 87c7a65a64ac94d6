"""How sphinx builds this documentation; `make docs` runs it with warnings as errors."""

from __future__ import annotations

import vmscope

project = "vmscope"
author = "the vmscope developers"
release = version = vmscope.__version__
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"vmscope {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_js_files = ["tables.js"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
nitpicky = True
