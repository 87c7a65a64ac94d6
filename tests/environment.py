"""A virtual environment of the test's own, in which vmscope can be imported and autostart can be on."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

import vmscope
from vmscope.cli.autostart import NAME

PATIENCE = 60.0  # seconds


class Environment:
    """`python` is its interpreter, `site` its site-packages, `file` the one that autostart writes there."""

    def __init__(self, folder: Path, *, source: Path | None = None, guests: bool = False) -> None:
        """`source` is where vmscope is found, by default the one under test; with `guests` so is pytest."""
        venv.create(folder, symlinks=True)
        self.folder = folder
        self.python = str(folder / "bin" / "python")
        self.site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        self.file = self.site / NAME
        paths = [str(source or Path(vmscope.__file__).parents[1])]
        if guests:
            paths.append(sysconfig.get_path("purelib"))
        (self.site / "_paths.pth").write_text("\n".join(paths) + "\n")

    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None, cwd: str | Path | None = None, program: str = ""
    ) -> subprocess.Popen[bytes]:
        """The interpreter, or another `program` of the environment."""
        command = [str(self.folder / "bin" / program) if program else self.python, *arguments]
        return subprocess.Popen(
            command,
            env={**_PLAIN, **(env or {})},
            cwd=cwd or self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        program: str = "",
        stdin: bytes = b"",
    ) -> tuple[int, str, str]:
        """Exit status, output and errors of a whole run."""
        with self.start(*arguments, env=env, cwd=cwd, program=program) as process:
            output, errors = process.communicate(stdin, timeout=PATIENCE)
        return process.returncode, os.fsdecode(output), os.fsdecode(errors)

    def vmscope(self, *arguments: str) -> tuple[int, str, str]:
        return self.run("-m", "vmscope", *arguments)

    def switch(self, state: str) -> None:
        status, _, errors = self.vmscope("autostart", state)
        assert (status, errors) == (0, "")

    def both(self, *arguments: str, **options: object) -> tuple[tuple[int, str, str], tuple[int, str, str]]:
        """The same run without autostart and with it."""
        self.switch("off")
        without = self.run(*arguments, **options)  # type: ignore[arg-type]
        self.switch("on")
        return without, self.run(*arguments, **options)  # type: ignore[arg-type]


_PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VMSCOPE", "COVERAGE"))}


def is_published(pid: int) -> bool:
    return bool(regions({pid}))


def regions(pids: set[int] | Sequence[int]) -> set[int]:
    """Those of the pids for which a file of this user stands."""
    import pwd

    folder = Path("/tmp") / f"hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}"
    return {pid for pid in pids if (folder / str(pid)).exists()}
