/* Reads and gathers of a file that changes its size, held against what it contains. */
#include "python.h"

int vmscope_add_mapping(PyObject *module);

const Fuzzed fuzzed = {.check = "mapping", .add = vmscope_add_mapping};
