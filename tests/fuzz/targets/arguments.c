/* The arguments of a command, as a client has written them. */
#include "python.h"

const Fuzzed fuzzed = {.check = "arguments", .traced = "/vmscope/commands/arguments.py"};
