/* The 156 slots of a jvmtiEnv: those that are in C, and for each other one a function that hands its arguments on. */
#include "general.h"

/* A slot that the specification reserves: an agent that calls it has found no function. */
static int32_t
reserved(void)
{
    return ERROR_NOT_AVAILABLE;
}

#include "jvmti_slots.h"
