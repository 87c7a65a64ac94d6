/* Made by scripts/jvmti_slots.py from tool/spec/functions.py and tool/spec/codes.py. */

static int32_t /* SetEventNotificationMode */
slot_2(Environment *environment, int32_t a, int32_t b, const void *c)
{
    const Value values[] = {{.i = a}, {.i = b}, {.l = (void *)c}};
    return jni_forward(environment, 2, 3, values, "iil");
}

static int32_t /* GetAllModules */
slot_3(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 3, 2, values, "ll");
}

static int32_t /* GetAllThreads */
slot_4(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 4, 2, values, "ll");
}

static int32_t /* SuspendThread */
slot_5(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 5, 1, values, "l");
}

static int32_t /* ResumeThread */
slot_6(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 6, 1, values, "l");
}

static int32_t /* StopThread */
slot_7(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 7, 2, values, "ll");
}

static int32_t /* InterruptThread */
slot_8(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 8, 1, values, "l");
}

static int32_t /* GetThreadInfo */
slot_9(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 9, 2, values, "ll");
}

static int32_t /* GetOwnedMonitorInfo */
slot_10(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 10, 3, values, "lll");
}

static int32_t /* GetCurrentContendedMonitor */
slot_11(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 11, 2, values, "ll");
}

static int32_t /* RunAgentThread */
slot_12(Environment *environment, const void *a, const void *b, const void *c, int32_t d)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}, {.i = d}};
    return jni_forward(environment, 12, 4, values, "llli");
}

static int32_t /* GetTopThreadGroups */
slot_13(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 13, 2, values, "ll");
}

static int32_t /* GetThreadGroupInfo */
slot_14(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 14, 2, values, "ll");
}

static int32_t /* GetThreadGroupChildren */
slot_15(Environment *environment, const void *a, const void *b, const void *c, const void *d, const void *e)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}, {.l = (void *)d}, {.l = (void *)e}};
    return jni_forward(environment, 15, 5, values, "lllll");
}

static int32_t /* GetFrameCount */
slot_16(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 16, 2, values, "ll");
}

static int32_t /* GetThreadState */
slot_17(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 17, 2, values, "ll");
}

static int32_t /* GetCurrentThread */
slot_18(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 18, 1, values, "l");
}

static int32_t /* GetFrameLocation */
slot_19(Environment *environment, const void *a, int32_t b, const void *c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.l = (void *)c}, {.l = (void *)d}};
    return jni_forward(environment, 19, 4, values, "lill");
}

static int32_t /* NotifyFramePop */
slot_20(Environment *environment, const void *a, int32_t b)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}};
    return jni_forward(environment, 20, 2, values, "li");
}

static int32_t /* GetLocalObject */
slot_21(Environment *environment, const void *a, int32_t b, int32_t c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.l = (void *)d}};
    return jni_forward(environment, 21, 4, values, "liil");
}

static int32_t /* GetLocalInt */
slot_22(Environment *environment, const void *a, int32_t b, int32_t c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.l = (void *)d}};
    return jni_forward(environment, 22, 4, values, "liil");
}

static int32_t /* GetLocalLong */
slot_23(Environment *environment, const void *a, int32_t b, int32_t c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.l = (void *)d}};
    return jni_forward(environment, 23, 4, values, "liil");
}

static int32_t /* GetLocalFloat */
slot_24(Environment *environment, const void *a, int32_t b, int32_t c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.l = (void *)d}};
    return jni_forward(environment, 24, 4, values, "liil");
}

static int32_t /* GetLocalDouble */
slot_25(Environment *environment, const void *a, int32_t b, int32_t c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.l = (void *)d}};
    return jni_forward(environment, 25, 4, values, "liil");
}

static int32_t /* SetLocalObject */
slot_26(Environment *environment, const void *a, int32_t b, int32_t c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.l = (void *)d}};
    return jni_forward(environment, 26, 4, values, "liil");
}

static int32_t /* SetLocalInt */
slot_27(Environment *environment, const void *a, int32_t b, int32_t c, int32_t d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.i = d}};
    return jni_forward(environment, 27, 4, values, "liii");
}

static int32_t /* SetLocalLong */
slot_28(Environment *environment, const void *a, int32_t b, int32_t c, int64_t d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.j = d}};
    return jni_forward(environment, 28, 4, values, "liij");
}

static int32_t /* SetLocalFloat */
slot_29(Environment *environment, const void *a, int32_t b, int32_t c, float d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.f = d}};
    return jni_forward(environment, 29, 4, values, "liif");
}

static int32_t /* SetLocalDouble */
slot_30(Environment *environment, const void *a, int32_t b, int32_t c, double d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.d = d}};
    return jni_forward(environment, 30, 4, values, "liid");
}

static int32_t /* SetBreakpoint */
slot_38(Environment *environment, const void *a, int64_t b)
{
    const Value values[] = {{.l = (void *)a}, {.j = b}};
    return jni_forward(environment, 38, 2, values, "lj");
}

static int32_t /* ClearBreakpoint */
slot_39(Environment *environment, const void *a, int64_t b)
{
    const Value values[] = {{.l = (void *)a}, {.j = b}};
    return jni_forward(environment, 39, 2, values, "lj");
}

static int32_t /* GetNamedModule */
slot_40(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 40, 3, values, "lll");
}

static int32_t /* SetFieldAccessWatch */
slot_41(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 41, 2, values, "ll");
}

static int32_t /* ClearFieldAccessWatch */
slot_42(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 42, 2, values, "ll");
}

static int32_t /* SetFieldModificationWatch */
slot_43(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 43, 2, values, "ll");
}

static int32_t /* ClearFieldModificationWatch */
slot_44(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 44, 2, values, "ll");
}

static int32_t /* IsModifiableClass */
slot_45(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 45, 2, values, "ll");
}

static int32_t /* GetClassSignature */
slot_48(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 48, 3, values, "lll");
}

static int32_t /* GetClassStatus */
slot_49(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 49, 2, values, "ll");
}

static int32_t /* GetSourceFileName */
slot_50(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 50, 2, values, "ll");
}

static int32_t /* GetClassModifiers */
slot_51(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 51, 2, values, "ll");
}

static int32_t /* GetClassMethods */
slot_52(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 52, 3, values, "lll");
}

static int32_t /* GetClassFields */
slot_53(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 53, 3, values, "lll");
}

static int32_t /* GetImplementedInterfaces */
slot_54(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 54, 3, values, "lll");
}

static int32_t /* IsInterface */
slot_55(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 55, 2, values, "ll");
}

static int32_t /* IsArrayClass */
slot_56(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 56, 2, values, "ll");
}

static int32_t /* GetClassLoader */
slot_57(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 57, 2, values, "ll");
}

static int32_t /* GetObjectHashCode */
slot_58(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 58, 2, values, "ll");
}

static int32_t /* GetObjectMonitorUsage */
slot_59(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 59, 2, values, "ll");
}

static int32_t /* GetFieldName */
slot_60(Environment *environment, const void *a, const void *b, const void *c, const void *d, const void *e)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}, {.l = (void *)d}, {.l = (void *)e}};
    return jni_forward(environment, 60, 5, values, "lllll");
}

static int32_t /* GetFieldDeclaringClass */
slot_61(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 61, 3, values, "lll");
}

static int32_t /* GetFieldModifiers */
slot_62(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 62, 3, values, "lll");
}

static int32_t /* IsFieldSynthetic */
slot_63(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 63, 3, values, "lll");
}

static int32_t /* GetMethodName */
slot_64(Environment *environment, const void *a, const void *b, const void *c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}, {.l = (void *)d}};
    return jni_forward(environment, 64, 4, values, "llll");
}

static int32_t /* GetMethodDeclaringClass */
slot_65(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 65, 2, values, "ll");
}

static int32_t /* GetMethodModifiers */
slot_66(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 66, 2, values, "ll");
}

static int32_t /* ClearAllFramePops */
slot_67(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 67, 1, values, "l");
}

static int32_t /* GetMaxLocals */
slot_68(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 68, 2, values, "ll");
}

static int32_t /* GetArgumentsSize */
slot_69(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 69, 2, values, "ll");
}

static int32_t /* GetLineNumberTable */
slot_70(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 70, 3, values, "lll");
}

static int32_t /* GetMethodLocation */
slot_71(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 71, 3, values, "lll");
}

static int32_t /* GetLocalVariableTable */
slot_72(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 72, 3, values, "lll");
}

static int32_t /* SetNativeMethodPrefix */
slot_73(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 73, 1, values, "l");
}

static int32_t /* SetNativeMethodPrefixes */
slot_74(Environment *environment, int32_t a, const void *b)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}};
    return jni_forward(environment, 74, 2, values, "il");
}

static int32_t /* GetBytecodes */
slot_75(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 75, 3, values, "lll");
}

static int32_t /* IsMethodNative */
slot_76(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 76, 2, values, "ll");
}

static int32_t /* IsMethodSynthetic */
slot_77(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 77, 2, values, "ll");
}

static int32_t /* GetLoadedClasses */
slot_78(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 78, 2, values, "ll");
}

static int32_t /* GetClassLoaderClasses */
slot_79(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 79, 3, values, "lll");
}

static int32_t /* PopFrame */
slot_80(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 80, 1, values, "l");
}

static int32_t /* ForceEarlyReturnObject */
slot_81(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 81, 2, values, "ll");
}

static int32_t /* ForceEarlyReturnInt */
slot_82(Environment *environment, const void *a, int32_t b)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}};
    return jni_forward(environment, 82, 2, values, "li");
}

static int32_t /* ForceEarlyReturnLong */
slot_83(Environment *environment, const void *a, int64_t b)
{
    const Value values[] = {{.l = (void *)a}, {.j = b}};
    return jni_forward(environment, 83, 2, values, "lj");
}

static int32_t /* ForceEarlyReturnFloat */
slot_84(Environment *environment, const void *a, float b)
{
    const Value values[] = {{.l = (void *)a}, {.f = b}};
    return jni_forward(environment, 84, 2, values, "lf");
}

static int32_t /* ForceEarlyReturnDouble */
slot_85(Environment *environment, const void *a, double b)
{
    const Value values[] = {{.l = (void *)a}, {.d = b}};
    return jni_forward(environment, 85, 2, values, "ld");
}

static int32_t /* ForceEarlyReturnVoid */
slot_86(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 86, 1, values, "l");
}

static int32_t /* RedefineClasses */
slot_87(Environment *environment, int32_t a, const void *b)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}};
    return jni_forward(environment, 87, 2, values, "il");
}

static int32_t /* GetSourceDebugExtension */
slot_90(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 90, 2, values, "ll");
}

static int32_t /* IsMethodObsolete */
slot_91(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 91, 2, values, "ll");
}

static int32_t /* SuspendThreadList */
slot_92(Environment *environment, int32_t a, const void *b, const void *c)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 92, 3, values, "ill");
}

static int32_t /* ResumeThreadList */
slot_93(Environment *environment, int32_t a, const void *b, const void *c)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 93, 3, values, "ill");
}

static int32_t /* AddModuleReads */
slot_94(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 94, 2, values, "ll");
}

static int32_t /* AddModuleExports */
slot_95(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 95, 3, values, "lll");
}

static int32_t /* AddModuleOpens */
slot_96(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 96, 3, values, "lll");
}

static int32_t /* AddModuleUses */
slot_97(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 97, 2, values, "ll");
}

static int32_t /* AddModuleProvides */
slot_98(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 98, 3, values, "lll");
}

static int32_t /* IsModifiableModule */
slot_99(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 99, 2, values, "ll");
}

static int32_t /* GetAllStackTraces */
slot_100(Environment *environment, int32_t a, const void *b, const void *c)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 100, 3, values, "ill");
}

static int32_t /* GetThreadListStackTraces */
slot_101(Environment *environment, int32_t a, const void *b, int32_t c, const void *d)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.i = c}, {.l = (void *)d}};
    return jni_forward(environment, 101, 4, values, "ilil");
}

static int32_t /* GetThreadLocalStorage */
slot_102(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 102, 2, values, "ll");
}

static int32_t /* SetThreadLocalStorage */
slot_103(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 103, 2, values, "ll");
}

static int32_t /* GetStackTrace */
slot_104(Environment *environment, const void *a, int32_t b, int32_t c, const void *d, const void *e)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.i = c}, {.l = (void *)d}, {.l = (void *)e}};
    return jni_forward(environment, 104, 5, values, "liill");
}

static int32_t /* GetTag */
slot_106(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 106, 2, values, "ll");
}

static int32_t /* SetTag */
slot_107(Environment *environment, const void *a, int64_t b)
{
    const Value values[] = {{.l = (void *)a}, {.j = b}};
    return jni_forward(environment, 107, 2, values, "lj");
}

static int32_t /* ForceGarbageCollection */
slot_108(Environment *environment)
{
    return jni_forward(environment, 108, 0, NULL, "");
}

static int32_t /* IterateOverObjectsReachableFromObject */
slot_109(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 109, 3, values, "lll");
}

static int32_t /* IterateOverReachableObjects */
slot_110(Environment *environment, const void *a, const void *b, const void *c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}, {.l = (void *)d}};
    return jni_forward(environment, 110, 4, values, "llll");
}

static int32_t /* IterateOverHeap */
slot_111(Environment *environment, int32_t a, const void *b, const void *c)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 111, 3, values, "ill");
}

static int32_t /* IterateOverInstancesOfClass */
slot_112(Environment *environment, const void *a, int32_t b, const void *c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.l = (void *)c}, {.l = (void *)d}};
    return jni_forward(environment, 112, 4, values, "lill");
}

static int32_t /* GetObjectsWithTags */
slot_114(Environment *environment, int32_t a, const void *b, const void *c, const void *d, const void *e)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.l = (void *)c}, {.l = (void *)d}, {.l = (void *)e}};
    return jni_forward(environment, 114, 5, values, "illll");
}

static int32_t /* FollowReferences */
slot_115(Environment *environment, int32_t a, const void *b, const void *c, const void *d, const void *e)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.l = (void *)c}, {.l = (void *)d}, {.l = (void *)e}};
    return jni_forward(environment, 115, 5, values, "illll");
}

static int32_t /* IterateThroughHeap */
slot_116(Environment *environment, int32_t a, const void *b, const void *c, const void *d)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.l = (void *)c}, {.l = (void *)d}};
    return jni_forward(environment, 116, 4, values, "illl");
}

static int32_t /* SuspendAllVirtualThreads */
slot_118(Environment *environment, int32_t a, const void *b)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}};
    return jni_forward(environment, 118, 2, values, "il");
}

static int32_t /* ResumeAllVirtualThreads */
slot_119(Environment *environment, int32_t a, const void *b)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}};
    return jni_forward(environment, 119, 2, values, "il");
}

static int32_t /* SetEventCallbacks */
slot_122(Environment *environment, const void *a, int32_t b)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}};
    return jni_forward(environment, 122, 2, values, "li");
}

static int32_t /* GenerateEvents */
slot_123(Environment *environment, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_forward(environment, 123, 1, values, "i");
}

static int32_t /* GetExtensionFunctions */
slot_124(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 124, 2, values, "ll");
}

static int32_t /* GetExtensionEvents */
slot_125(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 125, 2, values, "ll");
}

static int32_t /* SetExtensionEventCallback */
slot_126(Environment *environment, int32_t a, const void *b)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}};
    return jni_forward(environment, 126, 2, values, "il");
}

static int32_t /* DisposeEnvironment */
slot_127(Environment *environment)
{
    return jni_forward(environment, 127, 0, NULL, "");
}

static int32_t /* GetSystemProperties */
slot_130(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 130, 2, values, "ll");
}

static int32_t /* GetSystemProperty */
slot_131(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 131, 2, values, "ll");
}

static int32_t /* SetSystemProperty */
slot_132(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 132, 2, values, "ll");
}

static int32_t /* GetThreadCpuTimerInfo */
slot_136(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 136, 1, values, "l");
}

static int32_t /* GetThreadCpuTime */
slot_137(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 137, 2, values, "ll");
}

static int32_t /* GetPotentialCapabilities */
slot_140(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 140, 1, values, "l");
}

static int32_t /* AddCapabilities */
slot_142(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 142, 1, values, "l");
}

static int32_t /* RelinquishCapabilities */
slot_143(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 143, 1, values, "l");
}

static int32_t /* GetAvailableProcessors */
slot_144(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 144, 1, values, "l");
}

static int32_t /* GetClassVersionNumbers */
slot_145(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 145, 3, values, "lll");
}

static int32_t /* GetConstantPool */
slot_146(Environment *environment, const void *a, const void *b, const void *c, const void *d)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}, {.l = (void *)d}};
    return jni_forward(environment, 146, 4, values, "llll");
}

static int32_t /* AddToBootstrapClassLoaderSearch */
slot_149(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 149, 1, values, "l");
}

static int32_t /* SetVerboseFlag */
slot_150(Environment *environment, int32_t a, uint8_t b)
{
    const Value values[] = {{.i = a}, {.z = b}};
    return jni_forward(environment, 150, 2, values, "iz");
}

static int32_t /* AddToSystemClassLoaderSearch */
slot_151(Environment *environment, const void *a)
{
    const Value values[] = {{.l = (void *)a}};
    return jni_forward(environment, 151, 1, values, "l");
}

static int32_t /* RetransformClasses */
slot_152(Environment *environment, int32_t a, const void *b)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}};
    return jni_forward(environment, 152, 2, values, "il");
}

static int32_t /* GetOwnedMonitorStackDepthInfo */
slot_153(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 153, 3, values, "lll");
}

static int32_t /* GetObjectSize */
slot_154(Environment *environment, const void *a, const void *b)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}};
    return jni_forward(environment, 154, 2, values, "ll");
}

static int32_t /* GetLocalInstance */
slot_155(Environment *environment, const void *a, int32_t b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.i = b}, {.l = (void *)c}};
    return jni_forward(environment, 155, 3, values, "lil");
}

static int32_t /* SetHeapSamplingInterval */
slot_156(Environment *environment, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_forward(environment, 156, 1, values, "i");
}

static int32_t /* GetCapabilityHolders */
slot_157(Environment *environment, int32_t a, const void *b, const void *c)
{
    const Value values[] = {{.i = a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 157, 3, values, "ill");
}

static int32_t /* GetDerivedFlags */
slot_158(Environment *environment, const void *a, const void *b, const void *c)
{
    const Value values[] = {{.l = (void *)a}, {.l = (void *)b}, {.l = (void *)c}};
    return jni_forward(environment, 158, 3, values, "lll");
}

const void *const jvmti_functions[JVMTI_SLOTS] = {
    [0] = NULL,
    [1] = slot_2,
    [2] = slot_3,
    [3] = slot_4,
    [4] = slot_5,
    [5] = slot_6,
    [6] = slot_7,
    [7] = slot_8,
    [8] = slot_9,
    [9] = slot_10,
    [10] = slot_11,
    [11] = slot_12,
    [12] = slot_13,
    [13] = slot_14,
    [14] = slot_15,
    [15] = slot_16,
    [16] = slot_17,
    [17] = slot_18,
    [18] = slot_19,
    [19] = slot_20,
    [20] = slot_21,
    [21] = slot_22,
    [22] = slot_23,
    [23] = slot_24,
    [24] = slot_25,
    [25] = slot_26,
    [26] = slot_27,
    [27] = slot_28,
    [28] = slot_29,
    [29] = slot_30,
    [30] = jni_create_raw_monitor,
    [31] = jni_destroy_raw_monitor,
    [32] = jni_raw_monitor_enter,
    [33] = jni_raw_monitor_exit,
    [34] = jni_raw_monitor_wait,
    [35] = jni_raw_monitor_notify,
    [36] = jni_raw_monitor_notify_all,
    [37] = slot_38,
    [38] = slot_39,
    [39] = slot_40,
    [40] = slot_41,
    [41] = slot_42,
    [42] = slot_43,
    [43] = slot_44,
    [44] = slot_45,
    [45] = jni_allocate,
    [46] = jni_deallocate,
    [47] = slot_48,
    [48] = slot_49,
    [49] = slot_50,
    [50] = slot_51,
    [51] = slot_52,
    [52] = slot_53,
    [53] = slot_54,
    [54] = slot_55,
    [55] = slot_56,
    [56] = slot_57,
    [57] = slot_58,
    [58] = slot_59,
    [59] = slot_60,
    [60] = slot_61,
    [61] = slot_62,
    [62] = slot_63,
    [63] = slot_64,
    [64] = slot_65,
    [65] = slot_66,
    [66] = slot_67,
    [67] = slot_68,
    [68] = slot_69,
    [69] = slot_70,
    [70] = slot_71,
    [71] = slot_72,
    [72] = slot_73,
    [73] = slot_74,
    [74] = slot_75,
    [75] = slot_76,
    [76] = slot_77,
    [77] = slot_78,
    [78] = slot_79,
    [79] = slot_80,
    [80] = slot_81,
    [81] = slot_82,
    [82] = slot_83,
    [83] = slot_84,
    [84] = slot_85,
    [85] = slot_86,
    [86] = slot_87,
    [87] = jni_get_version_number,
    [88] = jni_get_capabilities,
    [89] = slot_90,
    [90] = slot_91,
    [91] = slot_92,
    [92] = slot_93,
    [93] = slot_94,
    [94] = slot_95,
    [95] = slot_96,
    [96] = slot_97,
    [97] = slot_98,
    [98] = slot_99,
    [99] = slot_100,
    [100] = slot_101,
    [101] = slot_102,
    [102] = slot_103,
    [103] = slot_104,
    [104] = NULL,
    [105] = slot_106,
    [106] = slot_107,
    [107] = slot_108,
    [108] = slot_109,
    [109] = slot_110,
    [110] = slot_111,
    [111] = slot_112,
    [112] = NULL,
    [113] = slot_114,
    [114] = slot_115,
    [115] = slot_116,
    [116] = NULL,
    [117] = slot_118,
    [118] = slot_119,
    [119] = jni_set_function_table,
    [120] = jni_get_function_table,
    [121] = slot_122,
    [122] = slot_123,
    [123] = slot_124,
    [124] = slot_125,
    [125] = slot_126,
    [126] = slot_127,
    [127] = jni_get_error_name,
    [128] = jni_get_jlocation_format,
    [129] = slot_130,
    [130] = slot_131,
    [131] = slot_132,
    [132] = jni_get_phase,
    [133] = jni_get_current_cpu_timer_info,
    [134] = jni_get_current_cpu_time,
    [135] = slot_136,
    [136] = slot_137,
    [137] = jni_get_timer_info,
    [138] = jni_get_time,
    [139] = slot_140,
    [140] = NULL,
    [141] = slot_142,
    [142] = slot_143,
    [143] = slot_144,
    [144] = slot_145,
    [145] = slot_146,
    [146] = jni_get_storage,
    [147] = jni_set_storage,
    [148] = slot_149,
    [149] = slot_150,
    [150] = slot_151,
    [151] = slot_152,
    [152] = slot_153,
    [153] = slot_154,
    [154] = slot_155,
    [155] = slot_156,
};

const void *const jvmti_extensions[JVMTI_EXTENSIONS] = {
    [0] = slot_157,
    [1] = slot_158,
};

const int32_t jvmti_version_number = 0x30190000;

const char *const jvmti_error_names[JVMTI_ERRORS] = {
    [0] = "JVMTI_ERROR_NONE",
    [10] = "JVMTI_ERROR_INVALID_THREAD",
    [11] = "JVMTI_ERROR_INVALID_THREAD_GROUP",
    [12] = "JVMTI_ERROR_INVALID_PRIORITY",
    [13] = "JVMTI_ERROR_THREAD_NOT_SUSPENDED",
    [14] = "JVMTI_ERROR_THREAD_SUSPENDED",
    [15] = "JVMTI_ERROR_THREAD_NOT_ALIVE",
    [20] = "JVMTI_ERROR_INVALID_OBJECT",
    [21] = "JVMTI_ERROR_INVALID_CLASS",
    [22] = "JVMTI_ERROR_CLASS_NOT_PREPARED",
    [23] = "JVMTI_ERROR_INVALID_METHODID",
    [24] = "JVMTI_ERROR_INVALID_LOCATION",
    [25] = "JVMTI_ERROR_INVALID_FIELDID",
    [26] = "JVMTI_ERROR_INVALID_MODULE",
    [31] = "JVMTI_ERROR_NO_MORE_FRAMES",
    [32] = "JVMTI_ERROR_OPAQUE_FRAME",
    [34] = "JVMTI_ERROR_TYPE_MISMATCH",
    [35] = "JVMTI_ERROR_INVALID_SLOT",
    [40] = "JVMTI_ERROR_DUPLICATE",
    [41] = "JVMTI_ERROR_NOT_FOUND",
    [50] = "JVMTI_ERROR_INVALID_MONITOR",
    [51] = "JVMTI_ERROR_NOT_MONITOR_OWNER",
    [52] = "JVMTI_ERROR_INTERRUPT",
    [60] = "JVMTI_ERROR_INVALID_CLASS_FORMAT",
    [61] = "JVMTI_ERROR_CIRCULAR_CLASS_DEFINITION",
    [62] = "JVMTI_ERROR_FAILS_VERIFICATION",
    [63] = "JVMTI_ERROR_UNSUPPORTED_REDEFINITION_METHOD_ADDED",
    [64] = "JVMTI_ERROR_UNSUPPORTED_REDEFINITION_SCHEMA_CHANGED",
    [65] = "JVMTI_ERROR_INVALID_TYPESTATE",
    [66] = "JVMTI_ERROR_UNSUPPORTED_REDEFINITION_HIERARCHY_CHANGED",
    [67] = "JVMTI_ERROR_UNSUPPORTED_REDEFINITION_METHOD_DELETED",
    [68] = "JVMTI_ERROR_UNSUPPORTED_VERSION",
    [69] = "JVMTI_ERROR_NAMES_DONT_MATCH",
    [70] = "JVMTI_ERROR_UNSUPPORTED_REDEFINITION_CLASS_MODIFIERS_CHANGED",
    [71] = "JVMTI_ERROR_UNSUPPORTED_REDEFINITION_METHOD_MODIFIERS_CHANGED",
    [72] = "JVMTI_ERROR_UNSUPPORTED_REDEFINITION_CLASS_ATTRIBUTE_CHANGED",
    [73] = "JVMTI_ERROR_UNSUPPORTED_OPERATION",
    [79] = "JVMTI_ERROR_UNMODIFIABLE_CLASS",
    [80] = "JVMTI_ERROR_UNMODIFIABLE_MODULE",
    [98] = "JVMTI_ERROR_NOT_AVAILABLE",
    [99] = "JVMTI_ERROR_MUST_POSSESS_CAPABILITY",
    [100] = "JVMTI_ERROR_NULL_POINTER",
    [101] = "JVMTI_ERROR_ABSENT_INFORMATION",
    [102] = "JVMTI_ERROR_INVALID_EVENT_TYPE",
    [103] = "JVMTI_ERROR_ILLEGAL_ARGUMENT",
    [104] = "JVMTI_ERROR_NATIVE_METHOD",
    [106] = "JVMTI_ERROR_CLASS_LOADER_UNSUPPORTED",
    [110] = "JVMTI_ERROR_OUT_OF_MEMORY",
    [111] = "JVMTI_ERROR_ACCESS_DENIED",
    [112] = "JVMTI_ERROR_WRONG_PHASE",
    [113] = "JVMTI_ERROR_INTERNAL",
    [115] = "JVMTI_ERROR_UNATTACHED_THREAD",
    [116] = "JVMTI_ERROR_INVALID_ENVIRONMENT",
};
