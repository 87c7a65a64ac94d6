// A program that embeds Python and has an agent linked into it, whose functions end in _L (plain.c).

#include <Python.h>

int
main(int count, char **words)
{
    return Py_BytesMain(count, words);
}
