"""Every view on every region of the corpus, and users' own views, against jstat's own classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import corpus
from tests.oracle.jdk_tools import ask
from tests.support import JDK
from vmscope.cli._old_names import with_new_names
from vmscope.cli._standard_views import OPTIONS, UNSUPPORTED_OPTIONS, standard_view
from vmscope.cli._view_language import UnarySignError, ViewSyntaxError, find_view
from vmscope.cli._views import View
from vmscope.wire import decode

VIEWS = [*OPTIONS, *UNSUPPORTED_OPTIONS, "timestamp"]

OWN = r"""
// what a user may write
option plain { column { header "x" data sun.gc.collector.0.invocations } }
option first { column { header "^first" data 1 } }
option first { column { header "^second" data 2 } }
option gcutil { column { header "^mine^" data 1 } }
option marks {
  column { header "^left" data 1 width 9 align left }
  column { header "^mid^" data 1 width 9 align center }
  column { header "right^" data 1 width 9 align right }
  column { header "none" data 1 width 9 align right }
  column { header "a^b" data 1 width 3 }
  column { header "^^" data 1 width 3 }
  column { header "" data 1 }
  column { header "^wider than its width^" data 1 width 2 }
}
option pads {
  column { header "^a^" data 1 width 2 align center }
  column { header "^b^" data 1 width 3 align center }
  column { header "^c^" data 1 width 4 align center }
  column { header "^d^" data 12 width 7 align center }
}
option sums {
  column { header "^a" data 5 - 3 - 1 }
  column { header "^b" data 12 / 3 / 2 }
  column { header "^c" data 2*(3+4)/7 }
  column { header "^d" data 1-2*3+4 }
  column { header "^e" data ((7)) }
  column { header "^f" data .5*3 format "0.0" }
  column { header "^g" data 1 - 2 - 3 - 4 + 5 * 6 / 7 format "0.000" }
}
option limits {
  column { header "^a" data 1/0 }
  column { header "^b" data 0/0 }
  column { header "^c" data nowhere }
  column { header "^d" data nowhere required true }
  column { header "^e" data nowhere + 1 required true }
  column { header "^f" data nowhere + 1 }
  column { header "^g" data 2 scale percent }
  column { header "^h" data 0 scale T }
  column { header "^i" data 0-1 scale P }
}
option scales {
  column { header "^a" data 5 scale K format "0.00000000" }
  column { header "^b" data 5 scale M format "0.00000000" }
  column { header "^c" data 5 scale G format "0.0000000000" }
  column { header "^d" data 5 scale m }
  column { header "^e" data 5 scale u }
  column { header "^f" data 5 scale n }
  column { header "^g" data 5 scale p }
  column { header "^h" data 5 scale ms }
  column { header "^i" data 5 scale us }
  column { header "^j" data 5 scale ns }
  column { header "^k" data 5 scale ps }
  column { header "^l" data 5 scale min }
  column { header "^m" data 5 scale h }
  column { header "^n" data 5 scale hour }
  column { header "^o" data 5 scale s }
  column { header "^p" data 5 scale sec }
  column { header "^q" data 5 scale raw }
}
option texts {
  column { header "^a" data sun.gc.cause width 30 align left }
  column { header "b^" data java.rt.vmFlags width 6 align right }
  column { header "^c^" data (sun.gc.collector.0.name) width 40 align center format "0.0" }
}
option formats {
  column { header "^a" data 1234567.891 format "#,##0.00" }
  column { header "^b" data 0-7.25 format "0.0;(0.0)" width 12 }
  column { header "^c" data 0.125 format "0.0%" }
  column { header "^d" data 12345 format "0.##E0" }
  column { header "^e" data 1 format "'#'0" }
}
option escapes { column { header "^\ttab\\\"\101\x" data 1 /* a
comment */ width 5 // and another
} }
option own {
  column { header "^size" data sun.perfdata.size }
  column { header "^v" data sun.perfdata.majorVersion } }
option nothing { }
"""
OWN_VIEWS = "plain first gcutil marks pads sums limits scales texts formats escapes nothing timestamp".split()

BROKEN = [
    "option x { colum { } }",
    "option x { column { header x } }",
    "option x { column { header 'x' data 1 } }",
    "option x { column { data option } }",
    "option x { column { data ( 1 + ) } }",
    "option x { column { data 1 } }",
    'option x { column { header "x" } }',
    'option x { column { header "x" data 1 } column { } }',
    'option x { column { header "x" data 1 width "x" } }',
    'option x { column { header "x" data 1 align foo } }',
    'option x { column { header "x" data 1 scale foo } }',
    'option x { column { header "x" data 1 scale 5 } }',
    'option x { column { header "x" data 1 ',
    'option x { column { header "x data 1 }\n}',
    'option x {\n\n /* x\n y */ // z\n\n column { header "x"\r\n data 1 ; }',
    'option x { column { header "^x y" data 1.5.2.5x }}',
    'option x { column { header "^x" data 3e4}}',
    'option x { column { header "^x" data $1 } }',
    "option x",
    "option x { { ",
    "option x }",
    "option x { column { % } }",
]


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return corpus.write(tmp_path_factory.mktemp("regions"))


def ours(view: View | None, first: View | None, region: bytes) -> str:
    assert view is not None
    columns = [*(first.columns[:1] if first else ()), *view.columns]
    shown = View(view.name, columns)
    return f"{shown.header()}\n{shown.row(with_new_names(decode.values(region)))}"


@pytest.mark.parametrize("timestamp", ["", "t"], ids=["", "with -t"])
def test_standard_views_of_every_region(jdk17: JDK, regions: dict[str, Path], timestamp: str) -> None:
    cases = [(name, option) for name in regions for option in VIEWS]
    answers = ask(jdk17, (("view", option, timestamp, str(regions[name])) for name, option in cases))
    readable, wrong = 0, []
    for (name, option), java in zip(cases, answers, strict=True):
        if java.startswith("!"):
            continue  # which regions can be read is wire's matter
        readable += 1
        first = standard_view("timestamp") if timestamp else None
        text = ours(standard_view(option, unsupported=True), first, corpus.load(name))
        if text != java:
            wrong.append((name, option, java, text))
    assert readable > 40 * len(VIEWS)
    assert not wrong, f"{len(wrong)} of {readable}: {wrong[:3]}"


def test_own_views(jdk17: JDK, regions: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "jstat_options"
    file.write_text(OWN)
    names = [name for name in regions if not name.startswith("made-")][::7]
    cases = [(name, option) for name in names for option in OWN_VIEWS]
    answers = ask(jdk17, (("view", option, "", str(regions[name]), str(file)) for name, option in cases))
    for (name, option), java in zip(cases, answers, strict=True):
        view = find_view(OWN, option) or standard_view(option)
        assert ours(view, None, corpus.load(name)) == java, (name, option)


@pytest.mark.parametrize("text", BROKEN)
def test_broken_views(jdk17: JDK, tmp_path: Path, text: str) -> None:
    """Through jstat itself, which names file and line."""
    options = tmp_path / ".jvmstat" / "jstat_options"
    options.parent.mkdir()
    options.write_text(text)
    run = jdk17.run("jstat", f"-J-Duser.home={tmp_path}", "-x", "1")
    with pytest.raises(ViewSyntaxError) as error:
        find_view(text, "x")
    assert run.returncode == 1
    said = run.stderr.partition("\nParsing of ")[0]
    assert said.replace("'true|false'", "'false|true'") == f"file:{options}: {error.value}"


def test_a_sign_is_refused_as_jstat_dies_of_it(jdk17: JDK, tmp_path: Path) -> None:
    options = tmp_path / ".jvmstat" / "jstat_options"
    options.parent.mkdir()
    options.write_text('option x { column { header "x" data -1 } }')
    run = jdk17.run("jstat", f"-J-Duser.home={tmp_path}", "-x", "1")
    assert run.returncode == 1
    assert "NullPointerException" in run.stderr
    with pytest.raises(UnarySignError, match="a sign before an operand"):
        find_view(options.read_text(), "x")
