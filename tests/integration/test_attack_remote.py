"""A client starts vmscope in a process whose program is its user's own: that program does not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import native
from tests.support import PATIENCE, Child, User, python_command

# Stands for a CPython 3.14, as its name says. Started with arguments, as by a client, it leaves a file.
PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words)
{
    (void)words;
    if (count < 2) {
        puts("ready");
        fflush(stdout);
        pause();
    }
    return creat(RAN, 0666) < 0;
}
"""
CLIENT = "import sys; from vmscope.cli import main; sys.exit(main(['attach', sys.argv[1]]))"
BECOME = """
import os
os.setgroups([])
os.setresgid({gid}, {gid}, {gid})
os.setresuid({uid}, {uid}, {uid})
os.execv({path!r}, ["python3.14"])
"""

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] == (3, 14), reason="a client of the target's own version runs no other program"
)


@pytest.mark.parametrize("client", ["root", "its user"])
def test_its_program_does_not_run(client: str, shared_folder: Path, private_user: User) -> None:
    source, program, ran = (shared_folder / name for name in ("python.c", "python3.14", "ran"))
    source.write_text(PROGRAM.replace("RAN", f'"{ran}"'))
    subprocess.run([native.compiler(), "-O1", "-Wall", "-Werror", str(source), "-o", str(program)], check=True)
    os.chown(program, private_user.uid, private_user.gid)
    os.chmod(shared_folder, 0o777)
    become = BECOME.format(uid=private_user.uid, gid=private_user.gid, path=str(program))
    user = private_user if client == "its user" else None
    modules = ["vmscope.cli.attach", "vmscope.attach.remote", "vmscope.attach.script", "vmscope.terminal", "subprocess"]
    with Child([sys.executable, "-c", become]) as child:
        child.read_until(b"ready\n")
        run = subprocess.run(
            python_command(CLIENT, str(child.pid), user=user, preload=modules),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert run.returncode == 1
    assert f"{program}, which has CPython 3.14 in it, and is not a python that only root can change" in run.stderr
    assert "run this with a vmscope of CPython 3.14" in run.stderr
    assert not ran.exists()
