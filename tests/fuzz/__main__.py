"""`python -m tests.fuzz [--seconds=60] [NAME ...]`: coverage-guided fuzzing of native parts, with clang's libFuzzer.

Each target is built with the address and undefined-behaviour sanitizers under build/fuzz, and starts with its corpus
in tests/fuzz/corpus. What it finds that covers more goes to build/fuzz/NAME-found, and what fails to build/fuzz;
`--merge` takes the least that covers as much into the corpus.
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzz import fuzzer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(fuzzer.TARGETS)}; all by default")
    parser.add_argument("--seconds", type=int, default=60, help="how long each is run")
    parser.add_argument("--merge", action="store_true", help="take what was found into the corpus")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in fuzzer.TARGETS]:
        parser.error(f"there is no target {unknown[0]!r}")
    status = 0
    for name in options.names or fuzzer.TARGETS:
        target = fuzzer.TARGETS[name]
        program = fuzzer.build(target)
        if options.merge:
            fuzzer.merge(target, program)
            continue
        run = fuzzer.run(target, program, seconds=options.seconds)
        print(f"{name}: {run}", flush=True)
        status |= run.failed
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except fuzzer.NoFuzzer as error:
        sys.exit(f"make fuzz: {error}")
