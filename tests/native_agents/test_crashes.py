"""A crash in a native agent's own code: the process dies of it as a JVM does, and the agent is named as there."""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.c_agents import CAgent, build
from tests.support import PATIENCE, Child
from vmscope.wire.decode import decode

AGENT = r"""
static char *where, *how;

__attribute__((noinline)) static void die(void) {
    if (strcmp(how, "null") == 0) {
        *(volatile int *)8 = 1;
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "trap") == 0) {
        __builtin_trap();
    } else if (strcmp(how, "below") == 0) { /* in the C library's code */
        say("%d", (int)strlen((const char *)(uintptr_t)strtoul("8", NULL, 10)));
    }
    say("alive");
}

__attribute__((constructor)) static void opened(void) {
    how = getenv("OPENED");
    if (how != NULL) {
        die();
    }
}

static void *thread(void *ignored UNUSED) {
    die();
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread current UNUSED) {
    if (strcmp(where, "init") == 0) {
        die();
    } else if (strcmp(where, "thread") == 0) {
        pthread_join(spawn(thread, NULL), NULL);
    }
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    die();
}

static int begin(char *options) {
    how = strdup(options);
    where = strsep(&how, "-");
    if (strcmp(where, "load") == 0) {
        die();
    }
    jvmtiEventCallbacks callbacks = {.VMInit = init, .VMDeath = death};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH);
    return 0;
}
"""
STATUS = {"null": signal.SIGSEGV, "trap": signal.SIGILL, "abort": signal.SIGABRT, "below": signal.SIGSEGV}
WITHIN = {"null", "trap"}  # the agent's own instruction
WHERE = ("load", "init", "thread", "death")
FRAME = re.compile(r"C +\[libagent\.so\+0x[0-9a-f]+\]")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> CAgent:
    return build(AGENT, tmp_path_factory.mktemp("agent"))


@pytest.fixture(autouse=True)
def no_cores() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def crash(agent: CAgent, where: str, how: str, *options: str, program: str = "", handled: bool = False) -> list[str]:
    """The lines of standard error of a program that dies."""
    env = {"PYTHONFAULTHANDLER": "1" if handled else ""}
    run = agent.python(program, options=f"{where}-{how}", before=options, env=env)
    assert run.returncode == -STATUS[how], (run.returncode, run.stdout, run.stderr)
    assert run.stdout == ""
    return run.stderr.splitlines()


def check(lines: list[str], how: str) -> None:
    """One line names the signal and the agent."""
    (line,) = [each for each in lines if each.startswith("vmscope: ")]
    number = STATUS[how]
    assert line.startswith(f"vmscope: {number.name} ({number:#x}) at pc=0x"), line
    assert (", in the native agent: " if how in WITHIN else ", called from the native agent: ") in line
    assert FRAME.search(line)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("how", STATUS)
def test_the_agent_is_named_and_the_region_saved(agent: CAgent, tmp_path: Path, how: str, where: str) -> None:
    saved = tmp_path / "saved"
    lines = crash(agent, where, how, "-XX:+PerfDataSaveToFile", f"-XX:PerfDataSaveFile={saved}")
    check(lines, how)
    assert len(lines) == 1
    data = saved.read_bytes()
    assert decode(data).values(data)["sun.rt.vmInitDoneTime"]


@pytest.mark.parametrize("how", STATUS)
def test_without_a_region_and_by_faulthandler_too(agent: CAgent, how: str) -> None:
    lines = crash(agent, "init", how, "-XX:-UsePerfData")
    check(lines, how)
    assert len(lines) == 1
    lines = crash(agent, "init", how, handled=True)
    check(lines, how)
    assert len([each for each in lines if each.startswith("Fatal Python error: ")]) == 1
    lines = crash(agent, "death", how, program="import faulthandler; faulthandler.enable()")
    check(lines, how)
    assert len([each for each in lines if each.startswith("Fatal Python error: ")]) == 1


def test_a_crash_of_the_program_s_own_is_not_the_agent_s(agent: CAgent) -> None:
    run = agent.python("import ctypes; ctypes.string_at(8)", options="none-none")
    assert (run.returncode, run.stderr) == (-signal.SIGSEGV, "")
    run = agent.python("import os, signal; os.kill(os.getpid(), signal.SIGABRT)", options="none-none")
    assert (run.returncode, run.stderr) == (-signal.SIGABRT, "")


def test_a_file_s_name_cannot_steer_a_terminal(agent: CAgent, tmp_path: Path) -> None:
    """A client names the libraries that it has loaded."""
    odd = CAgent(agent.jdk, tmp_path / "lib\x1b[2J\n\x9bé.so")
    shutil.copy(agent.library, odd.library)
    (line,) = crash(odd, "init", "trap")
    assert "C  [lib?[2J?????.so+0x" in line
    run = odd.python("", env={"OPENED": "trap"})
    assert run.stderr.endswith("is opened: C  [lib?[2J?????.so]\n")


@pytest.mark.parametrize("how", STATUS)
def test_in_a_constructor_of_the_library_s(agent: CAgent, tmp_path: Path, how: str) -> None:
    """It is not known yet where its code is; but which file is being opened."""
    saved = tmp_path / "saved"
    options = ["-XX:+PerfDataSaveToFile", f"-XX:PerfDataSaveFile={saved}"]
    run = agent.python("", before=tuple(options), env={"OPENED": how})
    assert (run.returncode, run.stdout) == (-STATUS[how], "")
    assert run.stderr.startswith(f"vmscope: {STATUS[how].name} ({STATUS[how]:#x}) at pc=0x")
    assert run.stderr.endswith(", while the native agent is opened: C  [libagent.so]\n")
    assert saved.stat().st_size


@pytest.mark.parametrize("how", sorted(WITHIN))
def test_it_is_the_frame_that_hotspot_names(agent: CAgent, tmp_path: Path, how: str) -> None:
    options = ["-Xint", "-Xshare:auto", "-XX:-CreateCoredumpOnCrash", f"-XX:ErrorFile={tmp_path / 'error'}"]
    run = agent.jdk.run("java", *options, f"{agent.option}=init-{how}", "-version")
    assert run.returncode != 0
    (frame,) = {found for line in run.stdout.splitlines() for found in FRAME.findall(line)}
    (line,) = crash(agent, "init", how)
    assert line.endswith(f"the native agent: {frame}")


@pytest.mark.parametrize("how", STATUS)
def test_in_onattach_on_the_thread_that_answers_clients(agent: CAgent, tmp_path: Path, how: str) -> None:
    saved = tmp_path / "saved"
    options = ["-XX:+PerfDataSaveToFile", f"-XX:PerfDataSaveFile={saved}", "-XX:+EnableDynamicAgentLoading"]
    program = "import sys; print('up', flush=True); sys.stdin.readline()"
    with Child([sys.executable, "-m", "vmscope", "run", *options, "-c", program], merge_stderr=True) as child:
        assert child.readline() == "up"
        command = [sys.executable, "-m", "vmscope", "attach", str(child.pid), f"{agent.library}=load-{how}"]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False)
        check([child.readline()], how)
        assert child.process.wait(PATIENCE) == -STATUS[how]
    assert saved.stat().st_size
