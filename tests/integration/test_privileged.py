"""Programs with more rights than their starter, and those told to ignore the environment, take nothing from it.

CPython itself obeys PYTHONPATH in a setuid program: so the agent that the environment names could be imported there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.environment import Environment
from tests.programs import source
from tests.support import BECOME, PATIENCE, User
from vmscope import environ

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="needs root, to make such programs and to become other users"
)

AGENT = """
import os
def agent_on_load(vm, options):
    open(os.environ["MARK"], "a").close()
    return 0
agent_on_attach = agent_on_load
"""

TELL = source("privileged/tell")

PRIVILEGED = ["setuid", "setgid", "capabilities"]
KINDS = [*PRIVILEGED, "-I", "-E", "plain"]

Run = Callable[..., subprocess.CompletedProcess[str]]


class Programs:
    """An environment whose interpreter is a copy, which others may run and `kind` gives rights to."""

    def __init__(self, folder: Path, user: User) -> None:
        self.environment = Environment(folder / "venv")
        self.user = user
        self.folder = folder
        (folder / "evil.py").write_text(AGENT)
        self.options = folder / "options"
        self.options.write_text("-XX:PerfDataMemorySize=256k\n")
        self.mark = folder / "mark"
        program = Path(self.environment.python)
        original = os.path.realpath(program)
        program.unlink()
        shutil.copyfile(original, program)

    def prepare(self, kind: str) -> None:
        program = self.environment.python
        os.chown(program, 0, self.user.gid if kind == "setgid" else 0)
        os.chmod(program, {"setuid": 0o4755, "setgid": 0o2755}.get(kind, 0o755))
        if kind == "capabilities":
            if not shutil.which("setcap"):
                pytest.skip("needs setcap")
            # with this one the library, which only root may enter here, can be read
            subprocess.run(["setcap", "cap_dac_read_search+ep", program], check=True)
        self.mark.unlink(missing_ok=True)

    def run(self, kind: str, *arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        self.prepare(kind)
        options = [kind] if kind.startswith("-") else []
        user = self.user.uid if kind in ("setuid", "capabilities") else None
        return subprocess.run(
            [self.environment.python, *options, *arguments],
            env={"PATH": os.defpath, "PYTHONPATH": str(self.folder), "MARK": str(self.mark), **env},
            cwd=self.folder,
            user=user,
            extra_groups=None if user is None else [],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture(scope="module")
def programs(private_user: User) -> Iterator[Programs]:
    folder = Path(tempfile.mkdtemp(prefix="vmscope-privileged-", dir="/var/tmp"))  # pytest's own are closed to others
    try:
        folder.chmod(0o755)
        yield Programs(folder, private_user)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def hostile(programs: Programs) -> dict[str, str]:
    return {
        "VMSCOPE_TOOL_OPTIONS": f"-Dx=1 -pyagent:evil @{programs.options}",
        "VMSCOPE_NATIVE": "0",
        "TMPDIR": "/chosen",
        "HOME": "/chosen",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_starts_itself(programs: Programs, hostile: dict[str, str], kind: str) -> None:
    run = programs.run(kind, "-c", TELL, env=hostile)
    assert (run.returncode, run.stderr) == (0, "")
    found = json.loads(run.stdout)
    if kind in PRIVILEGED and not found["secure"]:
        pytest.skip("this file system gives programs no rights")
    assert bool(found["secure"]) == (kind in PRIVILEGED)
    if kind == "plain":
        assert found["arguments"] == ["-Dx=1", "-pyagent:evil", "-XX:PerfDataMemorySize=256k"]
        assert (found["capacity"], found["implementation"], found["agents"]) == (256 << 10, "python", 1)
        assert (found["tmp"], found["home"], found["handed on"]) == ("/chosen", "/chosen", True)
        assert programs.mark.exists()
        return
    assert found["arguments"] == []
    assert (found["capacity"], found["agents"]) == (64 << 10, 0)
    extension = any((Path(environ.__file__).parent / "native").glob("_native.*"))
    assert found["implementation"] == ("c" if extension else "python")
    assert found["tmp"] == "/tmp"
    assert found["home"] != "/chosen"
    assert found["handed on"] == (kind not in PRIVILEGED)
    assert not programs.mark.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_vmscope_run(programs: Programs, hostile: dict[str, str], kind: str) -> None:
    """Nor does it say that it picked anything up; what the command line says is done."""
    code = "import vmscope; print(vmscope.status().flags.arguments)"
    run = programs.run(kind, "-m", "vmscope", "run", "-Dy=2", "-c", code, env=hostile)
    assert run.returncode == 0, run.stderr
    if kind == "plain":
        assert run.stdout == "['-Dx=1', '-pyagent:evil', '-XX:PerfDataMemorySize=256k', '-Dy=2']\n"
        assert run.stderr.startswith("Picked up VMSCOPE_TOOL_OPTIONS: -Dx=1 ")
        assert programs.mark.exists()
    else:
        assert (run.stdout, run.stderr) == ("['-Dy=2']\n", "")
        assert not programs.mark.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_autostart(programs: Programs, hostile: dict[str, str], kind: str) -> None:
    """Neither are agents loaded before the program, nor does VMSCOPE=0 hide it."""
    programs.prepare("plain")
    programs.environment.switch("on")
    try:
        code = "import sys; print('vmscope.boot' in sys.modules, 'evil' in sys.modules)"
        run = programs.run(kind, "-c", code, env=hostile)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout == f"True {kind == 'plain'}\n"
        assert programs.mark.exists() == (kind == "plain")
        run = programs.run(kind, "-c", code, env={"VMSCOPE": "0"})
        assert (run.returncode, run.stdout, run.stderr) == (0, f"{kind != 'plain'} False\n", "")
    finally:
        programs.prepare("plain")
        programs.environment.switch("off")


@pytest.mark.parametrize("kind", KINDS)
def test_what_vmscope_run_hands_on(programs: Programs, hostile: dict[str, str], kind: str) -> None:
    """Nor is such a program a VM because a variable says that `vmscope run` has started it."""
    wake = Path(shutil.copy(Path(environ.__file__).parents[1] / "vmscope_follow.pth", programs.environment.site))
    try:
        code = "import sys; print('vmscope.boot' in sys.modules, 'evil' in sys.modules)"
        env = {**hostile, "VMSCOPE_RUN_OPTIONS": hostile["VMSCOPE_TOOL_OPTIONS"], "VMSCOPE_TOOL_OPTIONS": ""}
        run = programs.run(kind, "-c", code, env=env)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout == f"{kind == 'plain'} {kind == 'plain'}\n"
    finally:
        wake.unlink()


def test_root_s_program_that_becomes_a_user_s(private_user: User) -> None:
    """As a server does: what root's environment said holds, though the process may not look into /proc/self then."""
    become = BECOME.format(uid=private_user.uid, gid=private_user.gid, name=private_user.name)
    code = f"""
import vmscope.runtime, vmscope.process_status
{become}
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
try:
    open("/proc/self/auxv", "rb")
except PermissionError:
    print("closed")
vmscope.start()
print(vmscope.status().flags.arguments)
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "VMSCOPE_TOOL_OPTIONS": "-Dx=1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "closed\n['-Dx=1']\n", "")


@pytest.mark.parametrize("ids", ["os.setresuid({0}, 0, 0)", "os.setresuid(0, {0}, 0)", "os.setresgid({0}, 0, 0)"])
def test_ids_that_differ_now(private_user: User, ids: str) -> None:
    code = f"""
import os
from vmscope import environ
print(environ.get("VMSCOPE_TOOL_OPTIONS"), environ.is_privileged())
{ids.format(private_user.uid)}
print(environ.get("VMSCOPE_TOOL_OPTIONS"), environ.is_privileged())
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "VMSCOPE_TOOL_OPTIONS": "-Dx=1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("-Dx=1 False\n True\n", "")
