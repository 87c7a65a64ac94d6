/* The 156 slots of a jvmtiEnv: those that are in C, and for each other one a function that hands its arguments on. Those
 * that the specification reserves are null, as in a JVM. */
#include "jvmti/general.h"

#include "jvmti/jvmti_slots.h"
