"""The region's file and mapping: how they come, who may do what, what is in the way, and how they go."""

from __future__ import annotations

import sys

from tests.wait import wait_for

assert sys.platform == "win32"

import os
from pathlib import Path

import pytest

from tests.windows.conftest import StartProgram
from tests.windows.programs import rights_of_file, rights_of_mapping
from vmscope import flags, win32
from vmscope.errors import DiskFull, InsecureDirectory, RegionFileError, VMScopeError
from vmscope.memory import _windows
from vmscope.memory.region import Region
from vmscope.wire.decode import decode

NAME = f"hsperfdata_{win32.user_name()}_{os.getpid()}"


def published() -> Region:
    region = Region(65536)
    region.set_accessible()
    region.allocate([("a.b", 7, 1, 3, None, 0)])
    region.publish()
    return region


def end(region: Region) -> None:
    assert region.file is not None
    region.file.unlink()


def mapped(name: str, size: int = 65536) -> memoryview:
    handle = win32.open_mapping(name)
    try:
        return win32.view(handle, size, writable=False)
    finally:
        win32.close(handle)


def error_of(call: object, *arguments: object) -> int:
    """The Windows error that a call ends with."""
    assert callable(call)
    with pytest.raises(OSError) as raised:
        call(*arguments)
    return raised.value.winerror


# -- how they come --------------------------------------------------------------------------------


def test_the_mapping_is_found_by_its_name_and_holds_the_whole_region(folder: Path) -> None:
    region = published()
    assert region.file is not None
    path = folder / f"hsperfdata_{win32.user_name()}" / str(os.getpid())
    assert region.file.path == str(path)
    assert path.stat().st_size == region.file.size == 65536
    decoded = decode(mapped(NAME))
    assert [entry.name for entry in decoded.entries] == ["a.b"]
    assert decoded.prologue.accessible
    end(region)
    del region, decoded  # the last view
    assert not path.exists()


def test_a_name_is_of_one_case_and_of_one_region(folder: Path) -> None:
    region = published()
    assert error_of(win32.open_mapping, NAME.upper()) == win32.ERROR_FILE_NOT_FOUND
    assert error_of(win32.open_mapping, NAME + "0") == win32.ERROR_FILE_NOT_FOUND
    end(region)
    assert error_of(win32.open_mapping, NAME) == win32.ERROR_FILE_NOT_FOUND


def test_who_opened_it_to_read_cannot_write(folder: Path) -> None:
    region = published()
    handle = win32.open_mapping(NAME)
    with pytest.raises(OSError) as raised:
        win32.view(handle, 65536, writable=True)
    win32.close(handle)
    assert raised.value.winerror == win32.ERROR_ACCESS_DENIED
    end(region)


def test_the_file_is_opened_only_by_who_lets_it_be_removed(folder: Path) -> None:
    region = published()
    assert region.file is not None
    with pytest.raises(PermissionError):
        open(region.file.path, "rb").close()  # Python's does not share the right to delete
    sharing_violation = 32
    assert error_of(win32.flush, region.file.path) == sharing_violation  # which would write
    end(region)


def test_an_existing_mapping_is_never_taken_over(folder: Path) -> None:
    first = published()
    assert first.file is not None
    second = Region(65536)
    with pytest.raises(RegionFileError):  # the file is in use already
        second.publish()
    other = folder / "other"
    with win32.SecurityDescriptor(_windows.rights_text(win32.user_sid(), _windows._FILE)) as rights:
        handle = rights.make_file(str(other))
        win32.write(handle, bytes(65536))
        with pytest.raises(FileExistsError) as raised:
            rights.make_mapping(handle, 65536, NAME)
        win32.close(handle)
    assert raised.value.winerror == win32.ERROR_ALREADY_EXISTS
    end(first)


def test_a_mapping_of_this_name_is_a_reason_and_leaves_no_file(folder: Path, start_program: StartProgram) -> None:
    code = (
        "import mmap\n"
        "name = f'hsperfdata_{os.environ[\"USERNAME\"]}_{os.getpid()}'\n"
        "taken = mmap.mmap(-1, 65536, tagname=name)\n"
        "vmscope.start()\n"
    )
    program = start_program(code, environment={"USERNAME": "taken"})
    assert program.ask("vmscope.status().path") == "None"
    reason = program.ask("vmscope.status().reason")
    assert f"another process has a mapping of the name hsperfdata_taken_{program.pid}" in reason
    assert os.listdir(folder / "hsperfdata_taken") == []
    assert program.ask("vmscope.counter('a.b').value") == "0"


# -- who may do what ------------------------------------------------------------------------------


def test_the_mappings_rights_are_the_three_and_nothing_is_inherited(folder: Path) -> None:
    region = published()
    user = win32.user_sid()
    assert rights_of_mapping(NAME) == f"D:P(A;;CCDCLCSWRPSDRCWDWO;;;{user})(A;;0x1f001f;;;BA)(A;;RC;;;WD)"
    end(region)


def test_a_mapping_opens_for_nobody_whom_its_rights_do_not_name(folder: Path) -> None:
    everyone_reads_the_rights = "D:P(A;;RC;;;WD)"
    with win32.SecurityDescriptor(everyone_reads_the_rights) as rights:
        file = rights.make_file(str(folder / "file"))
        win32.write(file, bytes(4096))
        mapping = rights.make_mapping(file, 4096, "vmscope_closed")
    assert error_of(win32.open_mapping, "vmscope_closed") == win32.ERROR_ACCESS_DENIED
    win32.close(mapping)
    win32.close(file)


def test_what_is_asked_for_is_what_the_table_says() -> None:
    sid = win32.user_sid()
    assert sid.startswith("S-1-5-")
    texts = [
        _windows.rights_text("S-1-5-18", masks) for masks in (_windows._DIRECTORY, _windows._FILE, _windows._MAPPING)
    ]
    assert texts == [
        "D:P(A;;0x1f01ff;;;S-1-5-18)(A;;0x1f01ff;;;BA)(A;;0x1200a9;;;WD)",
        "D:P(A;;0x1f01ff;;;S-1-5-18)(A;;0x1f01ff;;;BA)(A;;0x20088;;;WD)",
        "D:P(A;;0xf001f;;;S-1-5-18)(A;;0x1f001f;;;BA)(A;;0x20000;;;WD)",
    ]
    file_read_data = 1
    assert not _windows._FILE[1] & file_read_data


@pytest.mark.windows_only("it keeps a file's rights as Unix modes, and gives back what it makes of those")
def test_the_files_rights_are_the_three(folder: Path) -> None:
    region = published()
    assert region.file is not None
    rights = rights_of_file(region.file.path)
    assert rights.startswith("D:P(")
    assert rights.count("(") == 3
    assert "FR" not in rights.rpartition("(")[2]
    end(region)


@pytest.mark.windows_only("it keeps a directory's rights as Unix modes, and gives back what it makes of those")
def test_an_existing_directory_gets_its_rights_anew(folder: Path) -> None:
    directory = folder / f"hsperfdata_{win32.user_name()}"
    directory.mkdir()
    region = published()
    rights = rights_of_file(str(directory))
    assert rights.startswith("D:P(")
    assert rights.count("(") == 3
    end(region)


def test_rights_that_cannot_be_put_anew_are_a_note(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / f"hsperfdata_{win32.user_name()}").mkdir()

    def fail(_: win32.SecurityDescriptor, path: str) -> None:
        raise OSError(0, "Access denied.", path, win32.ERROR_ACCESS_DENIED)

    monkeypatch.setattr(win32.SecurityDescriptor, "apply", fail)
    region = published()
    assert region.file is not None
    [note] = region.file.notes
    assert "keeps its access rights" in note
    assert "Windows error 5" in note
    end(region)


# -- what is in the way ---------------------------------------------------------------------------


def reason(expected: type[VMScopeError]) -> str:
    with pytest.raises(expected) as raised:
        Region(65536).publish()
    return str(raised.value)


def test_a_link_in_the_directorys_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    place = os.environ.get("VMSCOPE_TEST_LINKS")
    if not place:
        pytest.skip("nobody made a link: VMSCOPE_TEST_LINKS names the folder with hsperfdata_linked in it")
    monkeypatch.setenv("TMP", place)
    monkeypatch.setenv("USERNAME", "linked")
    assert reason(InsecureDirectory).endswith("hsperfdata_linked is a link")


def test_a_file_in_the_directorys_place_is_refused(folder: Path) -> None:
    (folder / f"hsperfdata_{win32.user_name()}").write_text("x")
    assert reason(InsecureDirectory).endswith(" is not a directory")


def test_a_path_on_no_drive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMP", r"\\nowhere\share")
    assert "is not on a drive" in reason(InsecureDirectory)


@pytest.mark.parametrize(
    ("found", "why"),
    [(0x2, "keeps no access rights"), (0x8008, "is compressed"), (OSError(0, "No.", "", 5), "error 5")],
)
def test_a_volume_that_will_not_do_is_refused_unless_that_is_bypassed(
    found: int | OSError, why: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(root: str) -> int:
        assert root == f"{folder}"[:2] + "\\"
        if isinstance(found, OSError):
            raise found
        return found

    monkeypatch.setattr(win32, "volume_flags", answer)
    assert why in reason(InsecureDirectory)
    monkeypatch.setattr(flags, "in_force", flags.parse(["-XX:+PerfBypassFileSystemCheck"]))
    end(published())


def test_this_volume_keeps_access_rights(folder: Path) -> None:
    assert win32.volume_flags(f"{folder}"[:2] + "\\") & win32.FILE_PERSISTENT_ACLS


def test_a_temporary_folder_that_is_not_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMP", r"C:\nowhere")
    assert reason(RegionFileError) == r"C:\nowhere does not exist"


@pytest.mark.parametrize("name", [r"a\b", "a/b", "a:b"])
def test_a_user_whose_name_is_no_part_of_a_path_has_no_region(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERNAME", name)
    assert "cannot be part of a path" in reason(RegionFileError)


@pytest.mark.parametrize("name", [None, ""])
def test_without_a_username_it_is_the_accounts(name: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = win32.user_name()
    if name is None:
        monkeypatch.delenv("USERNAME", raising=False)
    else:
        monkeypatch.setenv("USERNAME", name)
    region = published()
    assert os.listdir(folder) == [f"hsperfdata_{account}"]
    end(region)


def test_a_full_volume_is_told_now(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(0, "There is not enough space on the disk.", None, win32.ERROR_DISK_FULL)

    monkeypatch.setattr(win32, "write", fail)
    assert "error 112" in reason(DiskFull)
    assert os.listdir(folder / f"hsperfdata_{win32.user_name()}") == []


# -- what others left -----------------------------------------------------------------------------


def test_what_ended_vms_left_goes_and_what_lives_stays(folder: Path, start_program: StartProgram) -> None:
    alive = start_program("")
    dead = start_program("")
    dead.kill()
    directory = folder / f"hsperfdata_{win32.user_name()}"
    directory.mkdir()
    for name in ("notes.txt", "0", str(2**32 + alive.pid), str(dead.pid), str(alive.pid), str(os.getpid())):
        (directory / name).write_bytes(b"x")
    (directory / "folder").mkdir()
    wait_for(lambda: not win32.runs(dead.pid), "it ended")
    region = published()
    assert sorted(os.listdir(directory)) == sorted([str(alive.pid), str(os.getpid()), "folder"])
    assert decode(mapped(NAME)).entries[0].name == "a.b"
    end(region)


# -- how they go ----------------------------------------------------------------------------------

# os.kill is TerminateProcess. ExitProcess is what Windows calls when a console is closed, or a user logs off.
EXIT_PROCESS = "__import__('ctypes').windll.kernel32.ExitProcess(3)"
ENDINGS = ["sys.exit(3)", "os._exit(3)", "os.abort()", "os.kill(os.getpid(), 9)", EXIT_PROCESS, "vmscope.stop()"]


@pytest.mark.parametrize("ending", ["end of input", "kill", *ENDINGS])
def test_file_and_name_are_gone_whatever_ends_the_process(
    ending: str, folder: Path, start_program: StartProgram
) -> None:
    program = start_program()
    path = program.ask("vmscope.status().path")
    name = f"hsperfdata_{win32.user_name()}_{program.pid}"
    mapped(name)
    assert os.path.exists(path)
    if ending == "kill":
        program.kill()
    elif ending == "end of input":
        assert program.end() == 0
    elif ending == "vmscope.stop()":
        assert program.ask(ending) == "None"
    else:
        program.send(ending)
        program.process.wait(30)
    wait_for(lambda: not os.path.exists(path), f"{path} is still there")
    assert error_of(win32.open_mapping, name) == win32.ERROR_FILE_NOT_FOUND
    assert os.listdir(folder / f"hsperfdata_{win32.user_name()}") == []


def test_ctrl_c_ends_it_in_order(folder: Path, start_program: StartProgram) -> None:
    program = start_program("vmscope.start()\nimport atexit\natexit.register(print, 'in order', flush=True)")
    path = program.ask("vmscope.status().path")
    program.send("__import__('ctypes').windll.kernel32.GenerateConsoleCtrlEvent(0, 0), __import__('time').sleep(30)")
    control_c_exit = 0xC000013A
    assert program.process.wait(30) == control_c_exit
    assert program.process.stdout is not None
    assert program.process.stdout.read() == "in order\n"
    assert not os.path.exists(path)


def test_a_reader_keeps_the_file_and_not_the_name(folder: Path, start_program: StartProgram) -> None:
    program = start_program("vmscope.start()\nvmscope.counter('a.b').add(5)")
    path = program.ask("vmscope.status().path")
    name = f"hsperfdata_{win32.user_name()}_{program.pid}"
    view = mapped(name)
    program.kill()
    wait_for(lambda: error_of(win32.open_mapping, name) == win32.ERROR_FILE_NOT_FOUND, "the name stays")
    assert decode(view).prologue.accessible
    assert os.path.exists(path)
    del view
    wait_for(lambda: not os.path.exists(path), f"{path} is still there")


def test_no_handle_of_it_is_inherited(folder: Path, start_program: StartProgram) -> None:
    code = (
        "import subprocess\nvmscope.start()\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE, close_fds=False)\n"
    )
    program = start_program(code)
    path = program.ask("vmscope.status().path")
    program.ask("vmscope.stop()")
    assert not os.path.exists(path)
    program.ask("child.communicate(b'x')")


def test_a_region_is_saved_at_exit(folder: Path, start_program: StartProgram) -> None:
    saved = folder / "saved"
    program = start_program(f"vmscope.start(r'-XX:PerfDataSaveFile={saved}')\nvmscope.counter('a.b').add(5)")
    assert program.end() == 0
    assert saved.stat().st_size == 65536
    found = saved.read_bytes()
    assert decode(found).values(found)["a.b"] == 5


def test_the_mapped_file_itself_may_be_the_image(folder: Path, start_program: StartProgram) -> None:
    program = start_program("vmscope.start('-XX:-PerfDataMirror')\nfive = vmscope.counter('a.b')")
    view = mapped(f"hsperfdata_{win32.user_name()}_{program.pid}")
    assert "a.b" in decode(view).values(view)
    program.ask("five.add(5)")
    wait_for(lambda: decode(view).values(view)["a.b"] == 5, "the thread does not come")
    assert program.ask("vmscope.stop()") == "None"
    assert program.ask("five.add(1), five.value") == "(None, 6)"
