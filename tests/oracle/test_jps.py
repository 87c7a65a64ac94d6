"""vmscope jps and JDK 17's jps, on machines where both see exactly the same VMs."""

from __future__ import annotations

import itertools

import pytest

from tests.oracle.isolated import isolated
from tests.oracle.jdk_tools import vmscope
from tests.support import JDK

LETTERS = ["".join(letters) for size in range(5) for letters in itertools.combinations("mlvV", size)]
OPTIONS = [[f"-{letters}"] if letters else [] for letters in LETTERS]
OPTIONS += [["-q"], ["-q", "-m"], ["-m", "-l", "-v"], ["-Vvlm"], ["-", "-l"], ["-l", "localhost"], ["-J-Dx=y", "-m"]]
OPTIONS += [["//localhost"], ["localhost:1099"], ["local://x"], ["my_host"], ["file:///x"]]

Run = tuple[int, str, str]  # exit status, stdout, stderr


def compare(theirs: Run, mine: Run, own_main: str = "Jps") -> None:
    """The same, but for jps' own line."""
    lines = theirs[1].splitlines(keepends=True)
    others = [line for line in lines if own_main not in line]
    assert mine[1] == "".join(others)
    assert mine[0] == theirs[0]
    assert mine[2] == theirs[2]


@pytest.mark.parametrize("count", [3, 12, 40])
def test_many_vms_in_the_same_order(jdk17: JDK, count: int) -> None:
    """Every letter, on regions of all HotSpots; pids that meet in one bucket of Java's hash set among them."""
    lines = OPTIONS if count == 40 else [["-l"], ["-q"]]
    runs = isolated(
        """
        names = [name for name in corpus.names() if not name.startswith("made-")]
        pids = [16 * n + 7 for n in range(1, 13)] + [1000 + 31 * n for n in range(28)]
        kept = [process(pid) for pid in pids[:facts["count"]]]
        for pid, name in zip(pids[:facts["count"]], names):
            publish(pid, corpus.load(name))
        result = [[run(facts["jps"], *line), ours("jps", *line)] for line in facts["lines"]]
        """,
        jps=jdk17.tool("jps"),
        lines=lines,
        count=count,
    )
    for line, (theirs, mine) in zip(lines, runs, strict=True):
        if "-q" not in line and theirs[1]:
            compare(theirs, mine)
            assert len(mine[1].splitlines()) == count
        elif theirs[1]:  # -q has no names: its own pid is the one that we do not list
            listed = mine[1].split()
            assert [pid for pid in theirs[1].split() if pid in listed] == listed
            assert len(listed) == count == len(theirs[1].split()) - 1
        else:
            assert mine == theirs == [0, "", ""]


def test_what_cannot_be_read(jdk17: JDK) -> None:
    """Ended processes, other users' files, odd files: listed, named unavailable or left out, as jps does it."""
    theirs, mine, files = isolated(
        r"""
        good = corpus.load("17.0.15-debian-g1")
        kept = [process(pid) for pid in (301, 302, 303, 304, 305, 306, 307, 308, 310, 311, 312, 313)]
        publish(301, good)
        publish(302, good, user="nobody", mode=0o644)
        publish(303, b"")                       # no bytes
        publish(304, good[:5000])               # no whole pages
        publish(305, bytes(4096))               # no magic
        publish(306, good[:5] + bytes([9]) + good[6:])   # no version
        publish(307, good[:4096])               # cut within an entry
        publish(308, good[:7] + bytes(1) + good[8:])     # never accessible
        odd = good.replace(b"java.rt.vmArgs", b"java.rt.vmArgz").replace(b"sun.rt.javaCommand", b"sun.rt.javaCommanx")
        publish(310, odd)                       # counters missing
        from vmscope.wire import encode
        for pid, wrong in ((311, "sun.rt.javaCommand"), (312, "java.rt.vmArgs"), (313, "java.rt.vmFlags")):
            entries = b"".join(
                encode.entry(name, units=1 if name == wrong else 5, variability=1, value=7 if name == wrong else b"x y")
                for name in ("sun.rt.javaCommand", "java.rt.vmArgs", "java.rt.vmFlags")
            )
            head = encode.prologue(used=32 + len(entries), num_entries=3, accessible=1)
            publish(pid, (head + entries).ljust(4096, b"\0"))   # a number where text should be
        publish(401, good)                      # its process has ended: a starting JVM sweeps it away
        publish(402, good, user="nobody", mode=0o644)   # the same, but not ours to sweep
        locked = open("/tmp/hsperfdata_root/401", "rb+")
        publish(403, good)
        import fcntl
        holder = open("/tmp/hsperfdata_root/403", "rb+")
        fcntl.flock(holder, fcntl.LOCK_EX)      # locked, so not swept
        os.mkdir("/tmp/hsperfdata_root/314")
        os.symlink("/tmp/hsperfdata_root/301", "/tmp/hsperfdata_root/309")
        publish("notapid", good)
        publish("0500", good)
        mine = ours("jps", "-lmvV")
        theirs = run(facts["jps"], "-lmvV")
        result = [theirs, mine, sorted(os.listdir("/tmp/hsperfdata_root"))]
        """,
        jps=jdk17.tool("jps"),
    )
    compare(theirs, mine, "sun.tools.jps.Jps")
    assert "401" not in files
    assert "403 -- process information unavailable\n" in mine[1]


def test_live_vms(jdk17: JDK) -> None:
    """JVMs with arguments, flags, options and modules, and a Python VM."""
    runs = isolated(
        r"""
        def start(*command):
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        ask = ["-importpass", "-keystore", "/none", "-alias"]
        java = [facts["java"], "-XX:+UseSerialGC", "-Xmx32m"]
        made = [
            start(*java, "-Dkey=a value", "sun.security.tools.keytool.Main", *ask, "a  b"),
            start(*java, "-Dlines=one\ntwo\rthree", "sun.security.tools.keytool.Main", *ask, "täglich"),
            start(*java, "-m", "java.base/sun.security.tools.keytool.Main", *ask, "c"),
            start(sys.executable, "-m", "vmscope", "run", "-Dx=y", "-c", facts["program"], "1", "2 3"),
        ]
        for child, end in zip(made, [b"password:"] * 3 + [b"ready\n"]):
            text = b""
            while not text.endswith(end):
                char = child.stdout.read(1)
                assert char, text
                text += char
        result = [[run(facts["jps"], *line), ours("jps", *line)] for line in facts["lines"]]
        for locale in ("C", "C.UTF-8"):
            env = dict(os.environ, LC_ALL=locale)
            result.append([run(facts["jps"], "-m", env=env), ours("jps", "-m", env=env)])
        """,
        java=jdk17.tool("java"),
        jps=jdk17.tool("jps"),
        lines=OPTIONS[: len(LETTERS)],
        program="print('ready', flush=True); input()",
    )
    for theirs, mine in runs:
        compare(theirs, mine)
        assert len(mine[1].splitlines()) == 4


@pytest.mark.parametrize(
    "line", [["-x"], ["-lx"], ["-qm"], ["--"], ["-l", "-?"], ["a", "b"], ["-J"], ["a b"], ["//"], ["--help"], ["-?"]]
)
def test_refusals_and_help(jdk17: JDK, line: list[str]) -> None:
    """Exit status, stream and the lines that state facts; the explanations of the options are in other words."""
    theirs = jdk17.run("jps", *line)
    mine = vmscope("jps", *line)
    assert mine.returncode == theirs.returncode
    assert mine.stdout == theirs.stdout == ""
    facts = theirs.stderr.partition("\n\nDefinitions:\n")[0]
    assert mine.stderr.partition("\n\nDefinitions:\n")[0] == facts


@pytest.mark.parametrize("host", ["nowhere.invalid", "rmi://localhost", "foo://x", ""])
def test_hosts_that_are_not_asked(jdk17: JDK, host: str) -> None:
    theirs, mine = jdk17.run("jps", host), vmscope("jps", host)
    assert mine.returncode == theirs.returncode == 1
    assert mine.stdout == theirs.stdout == ""
    assert len(mine.stderr.splitlines()) >= 1
