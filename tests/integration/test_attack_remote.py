"""Root starts vmscope in another user's process, whose program is that user's own: it reaches nothing of root's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import native
from tests.support import PATIENCE, Child, User

# Stands for a CPython 3.14, as its name says. Started with arguments, as by a client, it does WHAT; without, it waits.
PROGRAM = """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
int main(int count, char **words)
{
    (void)words;
    if (count < 2) {
        puts("ready");
        fflush(stdout);
        pause();
    }
    WHAT
    return 1;
}
"""
TYPES = r"""
    int terminal = open("/dev/tty", O_RDWR);
    const char *line = "touch owned\n";
    size_t typed = 0;
    while (terminal >= 0 && typed < strlen(line) && ioctl(terminal, TIOCSTI, line + typed) == 0) {
        typed++;
    }
    printf("Typed\n%zu bytes on %d\n", typed, terminal);
"""
TALKS = """
    static char much[1 << 16];
    memset(much, 'x', sizeof much);
    while (write(1, much, sizeof much) > 0) {
    }
"""


pytestmark = pytest.mark.skipif(
    sys.version_info[:2] == (3, 14), reason="a client of the target's own version runs no program of the target's"
)


def hostile(folder: Path, user: User, what: str) -> Child:
    source, program = folder / "python.c", folder / "python3.14"
    source.write_text(PROGRAM.replace("WHAT", what))
    subprocess.run([native.compiler(), "-O1", "-Wall", "-Werror", str(source), "-o", str(program)], check=True)
    os.chown(program, user.uid, user.gid)
    become = f"import os; os.setgroups([]); os.setresgid(*[{user.gid}] * 3); os.setresuid(*[{user.uid}] * 3)"
    child = Child([sys.executable, "-c", f"{become}; os.execv({str(program)!r}, ['python3.14'])"])
    child.read_until(b"ready\n")
    return child


def test_it_gets_no_terminal_to_type_on(shared_folder: Path, private_user: User) -> None:
    """What it would type there, root's shell would run next."""
    terminal = "import pty, sys; pty.spawn(sys.argv[1:])"
    with hostile(shared_folder, private_user, TYPES) as child:
        client = [sys.executable, "-c", terminal, sys.executable, "-m", "vmscope", "attach", str(child.pid)]
        run = subprocess.run(client, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert re.search(r"cannot be told to start vmscope: Typed: 0 bytes on -1\b", run.stdout), run.stdout + run.stderr


# The kernel's own figure for a child would be that of the test's process, of which it was a copy before it became this.
CLIENT = """
import sys
from vmscope.cli import main
status = main(["attach", sys.argv[1]])
with open("/proc/self/status") as file:
    print(next(line.split()[1] for line in file if line.startswith("VmHWM:")))
sys.exit(status)
"""


def test_of_what_it_says_little_is_kept(shared_folder: Path, private_user: User) -> None:
    with hostile(shared_folder, private_user, TALKS) as child:
        run = subprocess.run(
            [sys.executable, "-c", CLIENT, str(child.pid)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert run.returncode == 1
    assert "cannot be told to start vmscope: xxx" in run.stderr
    assert len(run.stderr) < 5000
    assert int(run.stdout) < 100_000  # KiB
