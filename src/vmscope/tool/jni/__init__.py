"""Native agents: a JavaVM, JNIEnvs and jvmtiEnvs of this process, in C's shape, on the tool interface.

The tables and what needs no Python stand in `native/jni`; here is what they call.
"""
