/* A part of the extension in an interpreter of the fuzzer's own; the other parts are their twins. Or a module in Python. */
#ifndef VMSCOPE_FUZZ_PYTHON_H
#define VMSCOPE_FUZZ_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    const char *check;            /* the function of tests/fuzz/checks.py that gets the part and the bytes */
    int (*add)(PyObject *module); /* or NULL */
    const char *traced;           /* how the path of the module in Python ends whose lines count as covered; or NULL */
} Fuzzed;

extern const Fuzzed fuzzed;

#endif
