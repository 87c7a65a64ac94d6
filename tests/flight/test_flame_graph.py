"""The flame graph's page, in a real browser."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flight.browser import Browser, find
from tests.wait import wait_for
from vmscope.flight.convert.flame_graph import difference, flame_graph
from vmscope.flight.convert.profile import Profile

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find()
    if program is None:
        pytest.skip("no chromium")
    with Browser(program, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


def shop(run: int = 60) -> Profile:
    """60 % price, 30 % pack of which a third is zip, 10 % another thread's."""
    made = Profile("cpu", "samples")
    main, price, pack, compress, report = (
        made.frame(name) for name in ("shop.main", "shop.Orders.price", "shop.Orders.pack", "zlib.compress", "report.r")
    )
    made.add("MainThread", (main, price), run, 1)
    made.add("MainThread", (main, pack), 20, 1)
    made.add("MainThread", (main, pack, compress), 10, 1)
    made.add("reporter", (report,), 10, 1)
    return made


def page(folder: Path, data: bytes) -> Path:
    path = folder / "page.html"
    path.write_bytes(data)
    return path


def current(browser: Browser) -> str:
    return browser.text("#current")


def select(browser: Browser, name: str, value: str) -> None:
    browser.run(
        f"{{const box = document.getElementById({name!r}); box.value = {value!r};"
        "box.dispatchEvent(new Event('change'))}"
    )


def press(browser: Browser, *keys: str) -> str:
    """What is told of the frame that the keys lead to."""
    for key in keys:
        browser.press(key)
    return current(browser)


def search(browser: Browser, text: str) -> str:
    """What share matches."""
    browser.run("document.getElementById('search').select()")
    browser.type(text)
    return browser.text("#matched")


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Browser:
    browser.open(page(tmp_path, flame_graph(shop(), "shop", "cpu: 100 samples")))
    return browser


def test_it_is_small_and_asks_nobody(opened: Browser, tmp_path: Path) -> None:
    assert len((tmp_path / "page.html").read_bytes()) < 40_000
    assert {url for url in opened.requests if not url.startswith("file:")} == set()
    assert opened.errors == []
    assert opened.text("h1") == "shop"
    assert opened.text("#about") == "cpu: 100 samples"
    assert current(opened) == "all: 100.0%, 100 samples; itself 0 samples"


def test_keys_walk_along_frames_and_zoom(opened: Browser) -> None:
    opened.run("document.getElementById('graph').focus()")
    assert press(opened, "ArrowUp").startswith("shop.main: 90.0%, 90 samples")
    assert press(opened, "ArrowRight").startswith("report.r: 10.0%")
    assert press(opened, "ArrowLeft", "ArrowUp").startswith("shop.Orders.price: 60.0%, 60 samples; itself 60")
    assert press(opened, "ArrowRight") == "shop.Orders.pack: 30.0%, 30 samples; itself 20 samples"
    assert press(opened, "Enter").startswith("shop.Orders.pack: 30.0%, 30 samples, 100.0% of the zoomed")
    assert opened.run("document.getElementById('reset').disabled") is False
    assert press(opened, "ArrowUp").startswith("zlib.compress: 10.0%, 10 samples, 33.3% of the zoomed")
    assert press(opened, "Backspace").startswith("shop.main: 90.0%")
    assert press(opened, "Escape").startswith("all: 100.0%")
    assert opened.run("document.getElementById('reset').disabled") is True


def test_clicks_zoom_and_the_mouse_shows_a_tooltip(opened: Browser) -> None:
    box = opened.run("{const b = document.getElementById('view').getBoundingClientRect();"
                     "[b.left, b.top, b.width, b.height]}")  # fmt: skip
    assert isinstance(box, list)
    left, top, width, height = box
    third_row = top + height - 2.5 * 18
    opened.move(left + width * 0.7, third_row)
    wait_for(lambda: not opened.run("document.getElementById('tip').hidden"), "no tooltip")
    assert opened.text("#tip") == "shop.Orders.pack\n30.0%, 30 samples; itself 20 samples"
    opened.click(left + width * 0.7, third_row)
    assert current(opened).startswith("shop.Orders.pack: 30.0%")
    opened.click(left + width * 0.1, top + height - 3.5 * 18)  # fills the left third now
    assert current(opened).startswith("zlib.compress: 10.0%")
    opened.run("document.getElementById('reset').click()")
    assert current(opened).startswith("all: ")


def test_a_search_shows_the_share_that_matches(opened: Browser) -> None:
    assert search(opened, "orders") == "90.0% matches"
    assert search(opened, r"\.(price|compress)$") == "70.0% matches"
    assert search(opened, "Zlib") == "0.0% matches"  # a capital is meant
    assert search(opened, "(") == "not a regular expression"
    assert search(opened, "zlib") == "10.0% matches"
    opened.run("document.getElementById('graph').focus()")
    assert press(opened, "n").startswith("zlib.compress: 10.0%")
    press(opened, "/")
    assert opened.run("document.activeElement.id") == "search"


def test_threads_one_by_one_and_side_by_side(opened: Browser) -> None:
    options = opened.run("[...document.querySelectorAll('#threads option')].map(each => each.textContent)")
    assert options == ["all together", "each by itself", "MainThread", "reporter"]
    select(opened, "threads", "1")
    assert current(opened) == "all: 100.0%, 10 samples; itself 0 samples"
    select(opened, "threads", "-2")
    opened.run("document.getElementById('graph').focus()")
    assert press(opened, "ArrowUp").startswith("MainThread: 90.0%, 90 samples")
    assert press(opened, "ArrowRight").startswith("reporter: 10.0%")


def test_the_table_of_functions_has_them_all(opened: Browser) -> None:
    opened.run("document.getElementById('functions').open = true")
    rows = wait_for(
        lambda: opened.run("[...document.querySelectorAll('tbody tr')].map(row => "
                           "[...row.children].map(cell => cell.textContent).join(' '))"),
        "no rows",
    )  # fmt: skip
    assert rows == [
        "60.0% 60.0% shop.Orders.price", "20.0% 30.0% shop.Orders.pack", "10.0% 10.0% zlib.compress",
        "10.0% 10.0% report.r", "0.0% 90.0% shop.main",
    ]  # fmt: skip
    opened.run("document.querySelectorAll('tbody button')[1].click()")
    assert opened.text("#matched") == "30.0% matches"


def test_others_text_is_text_and_no_other_script_runs(browser: Browser, tmp_path: Path) -> None:
    made = Profile("cpu", "samples")
    made.add(HOSTILE, (made.frame(HOSTILE), made.frame("\u202eevil\x1b[2J{title}{script}")), 1, 1)
    data = flame_graph(made, HOSTILE, HOSTILE)
    assert data.count(b"</script>") == 2
    browser.open(page(tmp_path, data))
    assert browser.run("document.title") == HOSTILE
    assert browser.run("document.querySelectorAll('img').length") == 0
    browser.run("document.getElementById('graph').focus()")
    assert press(browser, "ArrowUp", "ArrowUp").startswith("\\u202eevil\\x1b[2J{title}{script}: 100.0%")
    before = len(browser.errors)
    browser.run("{const added = document.createElement('script'); added.textContent = 'document.title = 1';"
                "document.body.append(added)}")  # fmt: skip
    assert browser.run("document.title") == HOSTILE
    assert browser.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    wait_for(lambda: browser.run("1") and len(browser.errors) > before, "the policy says nothing")


def pixels(browser: Browser, path: Path) -> tuple[int, list[bytes]]:
    """The picture's width and its lines; Chromium writes PNG with 8 bits a colour."""
    browser.picture(path)
    data = path.read_bytes()
    width, height, depth, kind = struct.unpack_from(">IIBB", data, 16)
    assert (depth, kind in (2, 6)) == (8, True)
    size = 3 if kind == 2 else 4
    packed, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += length + 12
    raw = zlib.decompress(packed)
    stride, above, lines = width * size, bytes(width * size), []
    for row in range(height):
        filter, line = raw[row * (stride + 1)], bytearray(raw[row * (stride + 1) + 1 : (row + 1) * (stride + 1)])
        for i in range(stride):
            left, up = line[i - size] if i >= size else 0, above[i]
            corner = above[i - size] if i >= size else 0
            if filter == 1:
                add = left
            elif filter == 2:
                add = up
            elif filter == 3:
                add = (left + up) // 2
            elif filter == 4:
                add = min((left, up, corner), key=lambda each: abs(left + up - corner - each))
            else:
                break
            line[i] = line[i] + add & 255
        above = bytes(line)
        lines.append(bytes(line[i] for i in range(stride) if i % size < 3))
    return width, lines


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_narrow_window_and_both_schemes(browser: Browser, tmp_path: Path, dark: bool) -> None:
    browser.open(page(tmp_path, flame_graph(shop(), "shop", "about")), width=390, height=700, dark=dark)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth") is True
    width, lines = pixels(browser, tmp_path / "page.png")
    corner = lines[0][:3]
    assert (max(corner) < 60) is dark
    bottom = browser.run("Math.round(document.getElementById('view').getBoundingClientRect().bottom)")
    assert isinstance(bottom, int)
    row = lines[bottom - 1 - 18 - 4]  # of the second frame from below: shop.main, then report.r
    colours = {row[3 * x : 3 * x + 3] for x in range(20, width - 20)}
    assert len(colours) >= 2
    assert all(max(colour) - min(colour) > 20 for colour in (row[3 * 200 : 3 * 200 + 3],)), "no colour"


def test_a_difference_has_both_sides(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, difference(shop(60), shop(160), "change", "about")))
    browser.run("document.getElementById('graph').focus()")
    told = press(browser, "ArrowUp", "ArrowUp")
    assert told == "shop.Orders.price: 60.0% before, 80.0% after: +20.00 points"
    assert press(browser, "ArrowRight").endswith("30.0% before, 15.0% after: −15.00 points")
    select(browser, "width", "1")
    assert browser.errors == []
    browser.run("document.getElementById('functions').open = true")
    first = wait_for(lambda: browser.run("document.querySelector('tbody tr')?.textContent"), "no rows")
    assert first == "+20.00 points+20.00 pointsshop.Orders.price"


def test_a_hundred_thousand_frames_stay_usable(browser: Browser, tmp_path: Path) -> None:
    made = Profile("cpu", "samples")
    top = made.frame("top")
    middle = [made.frame(f"m{i}") for i in range(100)]
    low = [made.frame(f"package{i % 50}.f{i}") for i in range(1000)]
    for i, outer in enumerate(middle):
        for j, inner in enumerate(low):
            made.add("main", (top, outer, inner), 1 + (i * j) % 7, 1)
    deep = tuple(made.frame(f"deep{i % 3}") for i in range(1500))
    made.add("main", (top, *deep), 50_000, 1)
    browser.open(page(tmp_path, flame_graph(made, "large", "about")))
    assert browser.errors == []
    assert re.match(r"all: 100.0%, [\d,]+ samples", current(browser))
    painted = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
    took = browser.run(
        f"(async () => {{ const begin = await {painted};"
        "for (let i = 0; i < 10; i++) { document.getElementById('view').scrollTop -= 100;"
        f" await {painted}; }} return (await {painted}) - begin; }})()"
    )
    assert isinstance(took, (int, float))
    assert took < 10_000, "ten pictures"
    assert search(browser, "package1.").endswith("matches")
    browser.run("document.getElementById('graph').focus()")
    for _ in range(30):
        told = press(browser, "ArrowUp")
    assert told.startswith("deep")
