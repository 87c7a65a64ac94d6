/* python.exe for a Windows CPython that comes without one: the interpreter is the DLL beside it. */

#include <windows.h>

typedef int (*Main)(int argc, wchar_t **argv);

int wmain(int argc, wchar_t **argv) {
    HMODULE python = LoadLibraryW(L"python311.dll");
    Main run = python ? (Main)(void *)GetProcAddress(python, "Py_Main") : NULL;
    return run ? run(argc, argv) : 127;
}
