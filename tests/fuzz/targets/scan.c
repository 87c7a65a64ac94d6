/* A region's entries and values as Python objects, held against the twin. */
#include "python.h"

int vmscope_add_scan(PyObject *module);

const Fuzzed fuzzed = {.check = "scan", .add = vmscope_add_scan};
