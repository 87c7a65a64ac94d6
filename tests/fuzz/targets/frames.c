/* The framing of the attach protocol, held against the twin. */
#include "python.h"

int vmscope_add_protocol(PyObject *module);

const Fuzzed fuzzed = {.check = "frames", .add = vmscope_add_protocol};
