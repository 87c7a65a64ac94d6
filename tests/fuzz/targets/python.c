#include "python.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 8192

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static PyObject *check, *part;

/* Steps from one line to the next, which libFuzzer takes for counters of its own. */
__attribute__((used, section("__libfuzzer_extra_counters"))) static uint8_t steps[STEPS];

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

static int
trace(PyObject *Py_UNUSED(self), PyFrameObject *frame, int what, PyObject *Py_UNUSED(argument))
{
    static unsigned last;
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_ssize_t length;
    const char *path = what == PyTrace_LINE ? PyUnicode_AsUTF8AndSize(code->co_filename, &length) : NULL;
    size_t suffix = strlen(fuzzed.traced);
    if (path != NULL && (size_t)length >= suffix && strcmp(path + length - suffix, fuzzed.traced) == 0) {
        unsigned line = (unsigned)PyFrame_GetLineNumber(frame);
        steps[(last * 16 + line) % STEPS]++;
        last = line;
    }
    Py_DECREF(code);
    return 0;
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
    require(check != NULL && part != NULL && (fuzzed.add == NULL || fuzzed.add(part) == 0));
    Py_DECREF(checks);
    if (fuzzed.traced != NULL) {
        PyEval_SetTrace(trace, NULL);
    }
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
