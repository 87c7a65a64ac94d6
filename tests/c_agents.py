"""Native agents of the tests' own: a few lines of C, built against a JDK's jvmti.h, run here and in its JVM."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import JDK, PATIENCE
from vmscope import native

VERSION = 17
WITH_MONITORING = pytest.mark.skipif(sys.version_info < (3, 12), reason="method entries need sys.monitoring")
# `vm` and `ti` are there when `begin(options)` is called, of Agent_OnLoad and of Agent_OnAttach; `say` prints a line.
PRELUDE = r"""
#define _GNU_SOURCE
#include <jvmti.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define UNUSED __attribute__((unused))

static UNUSED JavaVM *vm;
static UNUSED jvmtiEnv *ti;

static UNUSED void say(const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    line[length] = '\n';
    (void)!write(1, line, length + 1);
}

/* A line of what these, one after the other, give back. */
#define SAY(name, ...) { int64_t found[] = {__VA_ARGS__}; tell(name, found, sizeof found / sizeof *found); }

static UNUSED void tell(const char *name, const int64_t *found, size_t count) {
    char line[1024];
    int length = snprintf(line, sizeof line, "%s:", name);
    for (size_t i = 0; i < count; i++) {
        length += snprintf(line + length, sizeof line - length, " %lld", (long long)found[i]);
    }
    say("%s", line);
}

static UNUSED void nap(int milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static UNUSED pthread_t spawn(void *(*function)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, argument) != 0) {
        abort();
    }
    return thread;
}

static int begin(char *options);

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *given, char *options, void *reserved UNUSED) {
    vm = given;
    if ((*vm)->GetEnv(vm, (void **)&ti, JVMTI_VERSION_11) != JNI_OK) {
        return 99;
    }
    return begin(options == NULL ? "" : options);
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *given, char *options, void *reserved) {
    return Agent_OnLoad(given, options, reserved);
}

static UNUSED void enable(jvmtiEvent event) {
    if ((*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, event, NULL) != JVMTI_ERROR_NONE) {
        say("event %d cannot be enabled", event);
    }
}
"""


class CAgent:
    """A library. Its words are what it, and the program around it, print on standard output."""

    def __init__(self, jdk: JDK, library: Path) -> None:
        self.jdk = jdk
        self.library = library

    @property
    def option(self) -> str:
        return f"-agentpath:{self.library}"

    def python(
        self, program: str, *, options: str = "", env: Mapping[str, str] | None = None, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """A program under `vmscope run` with this agent."""
        agent = f"{self.option}={options}" if options else self.option
        return subprocess.run(
            [sys.executable, "-m", "vmscope", "run", *before, agent, "-c", dedent(program)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env=None if env is None else {**os.environ, **env},
        )

    def lines(self, program: str = "", **given: str) -> list[str]:
        """What a run prints that goes well and complains of nothing."""
        run = self.python(program, **given)  # type: ignore[arg-type]
        assert run.returncode == 0, (run.returncode, run.stdout, run.stderr)
        assert not run.stderr, run.stderr
        return run.stdout.splitlines()

    def java_lines(self, options: str = "") -> list[str]:
        """The same of a JVM's whole life."""
        agent = f"{self.option}={options}" if options else self.option
        run = self.jdk.run("java", "-Xint", "-XX:+UseSerialGC", agent, "-version")
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout.splitlines()


def build(source: str, folder: Path, name: str = "agent", version: int = VERSION) -> CAgent:
    """Skips without the extension, a JDK's header or a compiler."""
    if native.IMPLEMENTATION != "c":
        pytest.skip("native agents need the extension")
    jdk = JDK.find(version)
    if jdk is None or not (jdk.home / "include" / "jvmti.h").is_file():
        pytest.skip(f"no JDK {version} with include/jvmti.h: apt-get install openjdk-{version}-jdk-headless")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: apt-get install gcc")
    text, library = folder / f"{name}.c", folder / f"lib{name}.so"
    text.write_text(PRELUDE + dedent(source))
    include = jdk.home / "include"
    flags = ["-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
    more = shlex.split(os.environ.get("VMSCOPE_AGENT_CFLAGS", ""))  # a sanitizer's
    command = [compiler, *flags, *more, f"-I{include}", f"-I{include}/linux", str(text), "-o", str(library)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    return CAgent(jdk, library)
