#include "python.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static PyObject *check, *part;

static void
require(int holds)
{
    if (!holds) {
        if (PyErr_Occurred()) {
            PyErr_Print();
        }
        abort();
    }
}

static void
start(void)
{
    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.allocator = PYMEM_ALLOCATOR_MALLOC; /* each object is a block that the sanitizer watches */
    before.utf8_mode = 1;
    require(!PyStatus_Exception(Py_PreInitialize(&before)));
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    require(!PyStatus_Exception(PyConfig_SetBytesString(&config, &config.program_name, PYTHON)));
    require(!PyStatus_Exception(Py_InitializeFromConfig(&config)));
    PyConfig_Clear(&config);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setenv("VMSCOPE_NATIVE", "0", 1);
    start();
    require(PyRun_SimpleString("import sys; sys.path[:0] = ['" ROOT "', '" ROOT "/src']") == 0);
    PyObject *checks = PyImport_ImportModule("tests.fuzz.checks");
    require(checks != NULL);
    check = PyObject_GetAttrString(checks, fuzzed.check);
    part = PyModule_New("part");
    require(check != NULL && part != NULL && fuzzed.add(part) == 0);
    Py_DECREF(checks);
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PyObject *result = PyObject_CallFunction(check, "Oy#", part, (const char *)data, (Py_ssize_t)size);
    require(result != NULL);
    Py_DECREF(result);
    return 0;
}
