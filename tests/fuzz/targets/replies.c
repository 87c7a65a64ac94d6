/* What a client makes of the answer of a hostile VM. */
#include "python.h"

const Fuzzed fuzzed = {.check = "replies", .traced = "/vmscope/attach/client.py"};
