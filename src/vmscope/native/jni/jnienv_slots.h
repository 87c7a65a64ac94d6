/* Made by scripts/jni_slots.py from tool/jni/table.py. */

static void * /* DefineClass */
slot_5(void *native, void *a, void *b, void *c, int32_t d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.i = d}};
    return jni_call(native, 5, 'l', 4, values, "llli").l;
}

static void * /* FindClass */
slot_6(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 6, 'l', 1, values, "l").l;
}

static void * /* FromReflectedMethod */
slot_7(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 7, 'l', 1, values, "l").l;
}

static void * /* FromReflectedField */
slot_8(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 8, 'l', 1, values, "l").l;
}

static void * /* ToReflectedMethod */
slot_9(void *native, void *a, void *b, uint8_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.z = c}};
    return jni_call(native, 9, 'l', 3, values, "llz").l;
}

static void * /* GetSuperclass */
slot_10(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 10, 'l', 1, values, "l").l;
}

static uint8_t /* IsAssignableFrom */
slot_11(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 11, 'z', 2, values, "ll").z;
}

static void * /* ToReflectedField */
slot_12(void *native, void *a, void *b, uint8_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.z = c}};
    return jni_call(native, 12, 'l', 3, values, "llz").l;
}

static int32_t /* ThrowNew */
slot_14(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 14, 'i', 2, values, "ll").i;
}

static void /* ExceptionDescribe */
slot_16(void *native)
{
    jni_call(native, 16, 'v', 0, NULL, "");
}

static void /* FatalError */
slot_18(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    jni_call(native, 18, 'v', 1, values, "l");
}

static void * /* AllocObject */
slot_27(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 27, 'l', 1, values, "l").l;
}

static void * /* NewObject */
slot_28(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 28, 'l', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.l;
}

static void * /* NewObjectV */
slot_29(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 29, 'l', 2, values, list);
    jni_caller = outer;
    return result.l;
}

static void * /* NewObjectA */
slot_30(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 30, 'l', 3, values, "lll");
    jni_caller = outer;
    return result.l;
}

static uint8_t /* IsInstanceOf */
slot_32(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 32, 'z', 2, values, "ll").z;
}

static void * /* GetMethodID */
slot_33(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 33, 'l', 3, values, "lll");
    jni_caller = outer;
    return result.l;
}

static void * /* CallObjectMethod */
slot_34(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 34, 'l', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.l;
}

static void * /* CallObjectMethodV */
slot_35(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 35, 'l', 2, values, list);
    jni_caller = outer;
    return result.l;
}

static void * /* CallObjectMethodA */
slot_36(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 36, 'l', 3, values, "lll");
    jni_caller = outer;
    return result.l;
}

static uint8_t /* CallBooleanMethod */
slot_37(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 37, 'z', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.z;
}

static uint8_t /* CallBooleanMethodV */
slot_38(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 38, 'z', 2, values, list);
    jni_caller = outer;
    return result.z;
}

static uint8_t /* CallBooleanMethodA */
slot_39(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 39, 'z', 3, values, "lll");
    jni_caller = outer;
    return result.z;
}

static int8_t /* CallByteMethod */
slot_40(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 40, 'b', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.b;
}

static int8_t /* CallByteMethodV */
slot_41(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 41, 'b', 2, values, list);
    jni_caller = outer;
    return result.b;
}

static int8_t /* CallByteMethodA */
slot_42(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 42, 'b', 3, values, "lll");
    jni_caller = outer;
    return result.b;
}

static uint16_t /* CallCharMethod */
slot_43(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 43, 'c', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.c;
}

static uint16_t /* CallCharMethodV */
slot_44(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 44, 'c', 2, values, list);
    jni_caller = outer;
    return result.c;
}

static uint16_t /* CallCharMethodA */
slot_45(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 45, 'c', 3, values, "lll");
    jni_caller = outer;
    return result.c;
}

static int16_t /* CallShortMethod */
slot_46(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 46, 's', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.s;
}

static int16_t /* CallShortMethodV */
slot_47(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 47, 's', 2, values, list);
    jni_caller = outer;
    return result.s;
}

static int16_t /* CallShortMethodA */
slot_48(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 48, 's', 3, values, "lll");
    jni_caller = outer;
    return result.s;
}

static int32_t /* CallIntMethod */
slot_49(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 49, 'i', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.i;
}

static int32_t /* CallIntMethodV */
slot_50(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 50, 'i', 2, values, list);
    jni_caller = outer;
    return result.i;
}

static int32_t /* CallIntMethodA */
slot_51(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 51, 'i', 3, values, "lll");
    jni_caller = outer;
    return result.i;
}

static int64_t /* CallLongMethod */
slot_52(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 52, 'j', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.j;
}

static int64_t /* CallLongMethodV */
slot_53(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 53, 'j', 2, values, list);
    jni_caller = outer;
    return result.j;
}

static int64_t /* CallLongMethodA */
slot_54(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 54, 'j', 3, values, "lll");
    jni_caller = outer;
    return result.j;
}

static float /* CallFloatMethod */
slot_55(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 55, 'f', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.f;
}

static float /* CallFloatMethodV */
slot_56(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 56, 'f', 2, values, list);
    jni_caller = outer;
    return result.f;
}

static float /* CallFloatMethodA */
slot_57(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 57, 'f', 3, values, "lll");
    jni_caller = outer;
    return result.f;
}

static double /* CallDoubleMethod */
slot_58(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 58, 'd', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.d;
}

static double /* CallDoubleMethodV */
slot_59(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 59, 'd', 2, values, list);
    jni_caller = outer;
    return result.d;
}

static double /* CallDoubleMethodA */
slot_60(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 60, 'd', 3, values, "lll");
    jni_caller = outer;
    return result.d;
}

static void /* CallVoidMethod */
slot_61(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call_list(native, 61, 'v', 2, values, list);
    va_end(list);
    jni_caller = outer;
}

static void /* CallVoidMethodV */
slot_62(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call_list(native, 62, 'v', 2, values, list);
    jni_caller = outer;
}

static void /* CallVoidMethodA */
slot_63(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call(native, 63, 'v', 3, values, "lll");
    jni_caller = outer;
}

static void * /* CallNonvirtualObjectMethod */
slot_64(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 64, 'l', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.l;
}

static void * /* CallNonvirtualObjectMethodV */
slot_65(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 65, 'l', 3, values, list);
    jni_caller = outer;
    return result.l;
}

static void * /* CallNonvirtualObjectMethodA */
slot_66(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 66, 'l', 4, values, "llll");
    jni_caller = outer;
    return result.l;
}

static uint8_t /* CallNonvirtualBooleanMethod */
slot_67(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 67, 'z', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.z;
}

static uint8_t /* CallNonvirtualBooleanMethodV */
slot_68(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 68, 'z', 3, values, list);
    jni_caller = outer;
    return result.z;
}

static uint8_t /* CallNonvirtualBooleanMethodA */
slot_69(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 69, 'z', 4, values, "llll");
    jni_caller = outer;
    return result.z;
}

static int8_t /* CallNonvirtualByteMethod */
slot_70(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 70, 'b', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.b;
}

static int8_t /* CallNonvirtualByteMethodV */
slot_71(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 71, 'b', 3, values, list);
    jni_caller = outer;
    return result.b;
}

static int8_t /* CallNonvirtualByteMethodA */
slot_72(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 72, 'b', 4, values, "llll");
    jni_caller = outer;
    return result.b;
}

static uint16_t /* CallNonvirtualCharMethod */
slot_73(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 73, 'c', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.c;
}

static uint16_t /* CallNonvirtualCharMethodV */
slot_74(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 74, 'c', 3, values, list);
    jni_caller = outer;
    return result.c;
}

static uint16_t /* CallNonvirtualCharMethodA */
slot_75(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 75, 'c', 4, values, "llll");
    jni_caller = outer;
    return result.c;
}

static int16_t /* CallNonvirtualShortMethod */
slot_76(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 76, 's', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.s;
}

static int16_t /* CallNonvirtualShortMethodV */
slot_77(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 77, 's', 3, values, list);
    jni_caller = outer;
    return result.s;
}

static int16_t /* CallNonvirtualShortMethodA */
slot_78(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 78, 's', 4, values, "llll");
    jni_caller = outer;
    return result.s;
}

static int32_t /* CallNonvirtualIntMethod */
slot_79(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 79, 'i', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.i;
}

static int32_t /* CallNonvirtualIntMethodV */
slot_80(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 80, 'i', 3, values, list);
    jni_caller = outer;
    return result.i;
}

static int32_t /* CallNonvirtualIntMethodA */
slot_81(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 81, 'i', 4, values, "llll");
    jni_caller = outer;
    return result.i;
}

static int64_t /* CallNonvirtualLongMethod */
slot_82(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 82, 'j', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.j;
}

static int64_t /* CallNonvirtualLongMethodV */
slot_83(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 83, 'j', 3, values, list);
    jni_caller = outer;
    return result.j;
}

static int64_t /* CallNonvirtualLongMethodA */
slot_84(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 84, 'j', 4, values, "llll");
    jni_caller = outer;
    return result.j;
}

static float /* CallNonvirtualFloatMethod */
slot_85(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 85, 'f', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.f;
}

static float /* CallNonvirtualFloatMethodV */
slot_86(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 86, 'f', 3, values, list);
    jni_caller = outer;
    return result.f;
}

static float /* CallNonvirtualFloatMethodA */
slot_87(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 87, 'f', 4, values, "llll");
    jni_caller = outer;
    return result.f;
}

static double /* CallNonvirtualDoubleMethod */
slot_88(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 88, 'd', 3, values, list);
    va_end(list);
    jni_caller = outer;
    return result.d;
}

static double /* CallNonvirtualDoubleMethodV */
slot_89(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 89, 'd', 3, values, list);
    jni_caller = outer;
    return result.d;
}

static double /* CallNonvirtualDoubleMethodA */
slot_90(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 90, 'd', 4, values, "llll");
    jni_caller = outer;
    return result.d;
}

static void /* CallNonvirtualVoidMethod */
slot_91(void *native, void *a, void *b, void *c, ...)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    va_list list;
    va_start(list, c);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call_list(native, 91, 'v', 3, values, list);
    va_end(list);
    jni_caller = outer;
}

static void /* CallNonvirtualVoidMethodV */
slot_92(void *native, void *a, void *b, void *c, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call_list(native, 92, 'v', 3, values, list);
    jni_caller = outer;
}

static void /* CallNonvirtualVoidMethodA */
slot_93(void *native, void *a, void *b, void *c, void *d)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}, {.l = d}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call(native, 93, 'v', 4, values, "llll");
    jni_caller = outer;
}

static void * /* GetFieldID */
slot_94(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    return jni_call(native, 94, 'l', 3, values, "lll").l;
}

static void * /* GetObjectField */
slot_95(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 95, 'l', 2, values, "ll").l;
}

static uint8_t /* GetBooleanField */
slot_96(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 96, 'z', 2, values, "ll").z;
}

static int8_t /* GetByteField */
slot_97(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 97, 'b', 2, values, "ll").b;
}

static uint16_t /* GetCharField */
slot_98(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 98, 'c', 2, values, "ll").c;
}

static int16_t /* GetShortField */
slot_99(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 99, 's', 2, values, "ll").s;
}

static int32_t /* GetIntField */
slot_100(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 100, 'i', 2, values, "ll").i;
}

static int64_t /* GetLongField */
slot_101(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 101, 'j', 2, values, "ll").j;
}

static float /* GetFloatField */
slot_102(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 102, 'f', 2, values, "ll").f;
}

static double /* GetDoubleField */
slot_103(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 103, 'd', 2, values, "ll").d;
}

static void /* SetObjectField */
slot_104(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    jni_call(native, 104, 'v', 3, values, "lll");
}

static void /* SetBooleanField */
slot_105(void *native, void *a, void *b, uint8_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.z = c}};
    jni_call(native, 105, 'v', 3, values, "llz");
}

static void /* SetByteField */
slot_106(void *native, void *a, void *b, int8_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.b = c}};
    jni_call(native, 106, 'v', 3, values, "llb");
}

static void /* SetCharField */
slot_107(void *native, void *a, void *b, uint16_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.c = c}};
    jni_call(native, 107, 'v', 3, values, "llc");
}

static void /* SetShortField */
slot_108(void *native, void *a, void *b, int16_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.s = c}};
    jni_call(native, 108, 'v', 3, values, "lls");
}

static void /* SetIntField */
slot_109(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 109, 'v', 3, values, "lli");
}

static void /* SetLongField */
slot_110(void *native, void *a, void *b, int64_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.j = c}};
    jni_call(native, 110, 'v', 3, values, "llj");
}

static void /* SetFloatField */
slot_111(void *native, void *a, void *b, float c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.f = c}};
    jni_call(native, 111, 'v', 3, values, "llf");
}

static void /* SetDoubleField */
slot_112(void *native, void *a, void *b, double c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.d = c}};
    jni_call(native, 112, 'v', 3, values, "lld");
}

static void * /* GetStaticMethodID */
slot_113(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 113, 'l', 3, values, "lll");
    jni_caller = outer;
    return result.l;
}

static void * /* CallStaticObjectMethod */
slot_114(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 114, 'l', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.l;
}

static void * /* CallStaticObjectMethodV */
slot_115(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 115, 'l', 2, values, list);
    jni_caller = outer;
    return result.l;
}

static void * /* CallStaticObjectMethodA */
slot_116(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 116, 'l', 3, values, "lll");
    jni_caller = outer;
    return result.l;
}

static uint8_t /* CallStaticBooleanMethod */
slot_117(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 117, 'z', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.z;
}

static uint8_t /* CallStaticBooleanMethodV */
slot_118(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 118, 'z', 2, values, list);
    jni_caller = outer;
    return result.z;
}

static uint8_t /* CallStaticBooleanMethodA */
slot_119(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 119, 'z', 3, values, "lll");
    jni_caller = outer;
    return result.z;
}

static int8_t /* CallStaticByteMethod */
slot_120(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 120, 'b', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.b;
}

static int8_t /* CallStaticByteMethodV */
slot_121(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 121, 'b', 2, values, list);
    jni_caller = outer;
    return result.b;
}

static int8_t /* CallStaticByteMethodA */
slot_122(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 122, 'b', 3, values, "lll");
    jni_caller = outer;
    return result.b;
}

static uint16_t /* CallStaticCharMethod */
slot_123(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 123, 'c', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.c;
}

static uint16_t /* CallStaticCharMethodV */
slot_124(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 124, 'c', 2, values, list);
    jni_caller = outer;
    return result.c;
}

static uint16_t /* CallStaticCharMethodA */
slot_125(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 125, 'c', 3, values, "lll");
    jni_caller = outer;
    return result.c;
}

static int16_t /* CallStaticShortMethod */
slot_126(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 126, 's', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.s;
}

static int16_t /* CallStaticShortMethodV */
slot_127(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 127, 's', 2, values, list);
    jni_caller = outer;
    return result.s;
}

static int16_t /* CallStaticShortMethodA */
slot_128(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 128, 's', 3, values, "lll");
    jni_caller = outer;
    return result.s;
}

static int32_t /* CallStaticIntMethod */
slot_129(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 129, 'i', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.i;
}

static int32_t /* CallStaticIntMethodV */
slot_130(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 130, 'i', 2, values, list);
    jni_caller = outer;
    return result.i;
}

static int32_t /* CallStaticIntMethodA */
slot_131(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 131, 'i', 3, values, "lll");
    jni_caller = outer;
    return result.i;
}

static int64_t /* CallStaticLongMethod */
slot_132(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 132, 'j', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.j;
}

static int64_t /* CallStaticLongMethodV */
slot_133(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 133, 'j', 2, values, list);
    jni_caller = outer;
    return result.j;
}

static int64_t /* CallStaticLongMethodA */
slot_134(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 134, 'j', 3, values, "lll");
    jni_caller = outer;
    return result.j;
}

static float /* CallStaticFloatMethod */
slot_135(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 135, 'f', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.f;
}

static float /* CallStaticFloatMethodV */
slot_136(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 136, 'f', 2, values, list);
    jni_caller = outer;
    return result.f;
}

static float /* CallStaticFloatMethodA */
slot_137(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 137, 'f', 3, values, "lll");
    jni_caller = outer;
    return result.f;
}

static double /* CallStaticDoubleMethod */
slot_138(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 138, 'd', 2, values, list);
    va_end(list);
    jni_caller = outer;
    return result.d;
}

static double /* CallStaticDoubleMethodV */
slot_139(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call_list(native, 139, 'd', 2, values, list);
    jni_caller = outer;
    return result.d;
}

static double /* CallStaticDoubleMethodA */
slot_140(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 140, 'd', 3, values, "lll");
    jni_caller = outer;
    return result.d;
}

static void /* CallStaticVoidMethod */
slot_141(void *native, void *a, void *b, ...)
{
    const Value values[] = {{.l = a}, {.l = b}};
    va_list list;
    va_start(list, b);
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call_list(native, 141, 'v', 2, values, list);
    va_end(list);
    jni_caller = outer;
}

static void /* CallStaticVoidMethodV */
slot_142(void *native, void *a, void *b, va_list list)
{
    const Value values[] = {{.l = a}, {.l = b}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call_list(native, 142, 'v', 2, values, list);
    jni_caller = outer;
}

static void /* CallStaticVoidMethodA */
slot_143(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    jni_call(native, 143, 'v', 3, values, "lll");
    jni_caller = outer;
}

static void * /* GetStaticFieldID */
slot_144(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    return jni_call(native, 144, 'l', 3, values, "lll").l;
}

static void * /* GetStaticObjectField */
slot_145(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 145, 'l', 2, values, "ll").l;
}

static uint8_t /* GetStaticBooleanField */
slot_146(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 146, 'z', 2, values, "ll").z;
}

static int8_t /* GetStaticByteField */
slot_147(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 147, 'b', 2, values, "ll").b;
}

static uint16_t /* GetStaticCharField */
slot_148(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 148, 'c', 2, values, "ll").c;
}

static int16_t /* GetStaticShortField */
slot_149(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 149, 's', 2, values, "ll").s;
}

static int32_t /* GetStaticIntField */
slot_150(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 150, 'i', 2, values, "ll").i;
}

static int64_t /* GetStaticLongField */
slot_151(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 151, 'j', 2, values, "ll").j;
}

static float /* GetStaticFloatField */
slot_152(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 152, 'f', 2, values, "ll").f;
}

static double /* GetStaticDoubleField */
slot_153(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 153, 'd', 2, values, "ll").d;
}

static void /* SetStaticObjectField */
slot_154(void *native, void *a, void *b, void *c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.l = c}};
    jni_call(native, 154, 'v', 3, values, "lll");
}

static void /* SetStaticBooleanField */
slot_155(void *native, void *a, void *b, uint8_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.z = c}};
    jni_call(native, 155, 'v', 3, values, "llz");
}

static void /* SetStaticByteField */
slot_156(void *native, void *a, void *b, int8_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.b = c}};
    jni_call(native, 156, 'v', 3, values, "llb");
}

static void /* SetStaticCharField */
slot_157(void *native, void *a, void *b, uint16_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.c = c}};
    jni_call(native, 157, 'v', 3, values, "llc");
}

static void /* SetStaticShortField */
slot_158(void *native, void *a, void *b, int16_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.s = c}};
    jni_call(native, 158, 'v', 3, values, "lls");
}

static void /* SetStaticIntField */
slot_159(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 159, 'v', 3, values, "lli");
}

static void /* SetStaticLongField */
slot_160(void *native, void *a, void *b, int64_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.j = c}};
    jni_call(native, 160, 'v', 3, values, "llj");
}

static void /* SetStaticFloatField */
slot_161(void *native, void *a, void *b, float c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.f = c}};
    jni_call(native, 161, 'v', 3, values, "llf");
}

static void /* SetStaticDoubleField */
slot_162(void *native, void *a, void *b, double c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.d = c}};
    jni_call(native, 162, 'v', 3, values, "lld");
}

static void * /* NewString */
slot_163(void *native, void *a, int32_t b)
{
    const Value values[] = {{.l = a}, {.i = b}};
    return jni_call(native, 163, 'l', 2, values, "li").l;
}

static int32_t /* GetStringLength */
slot_164(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 164, 'i', 1, values, "l").i;
}

static void * /* GetStringChars */
slot_165(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 165, 'l', 2, values, "ll").l;
}

static void /* ReleaseStringChars */
slot_166(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    jni_call(native, 166, 'v', 2, values, "ll");
}

static void * /* NewStringUTF */
slot_167(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 167, 'l', 1, values, "l").l;
}

static int32_t /* GetStringUTFLength */
slot_168(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 168, 'i', 1, values, "l").i;
}

static void * /* GetStringUTFChars */
slot_169(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 169, 'l', 2, values, "ll").l;
}

static void /* ReleaseStringUTFChars */
slot_170(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    jni_call(native, 170, 'v', 2, values, "ll");
}

static int32_t /* GetArrayLength */
slot_171(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 171, 'i', 1, values, "l").i;
}

static void * /* NewObjectArray */
slot_172(void *native, int32_t a, void *b, void *c)
{
    const Value values[] = {{.i = a}, {.l = b}, {.l = c}};
    const void *const outer = jni_set_caller(__builtin_return_address(0));
    const Value result = jni_call(native, 172, 'l', 3, values, "ill");
    jni_caller = outer;
    return result.l;
}

static void * /* GetObjectArrayElement */
slot_173(void *native, void *a, int32_t b)
{
    const Value values[] = {{.l = a}, {.i = b}};
    return jni_call(native, 173, 'l', 2, values, "li").l;
}

static void /* SetObjectArrayElement */
slot_174(void *native, void *a, int32_t b, void *c)
{
    const Value values[] = {{.l = a}, {.i = b}, {.l = c}};
    jni_call(native, 174, 'v', 3, values, "lil");
}

static void * /* NewBooleanArray */
slot_175(void *native, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_call(native, 175, 'l', 1, values, "i").l;
}

static void * /* NewByteArray */
slot_176(void *native, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_call(native, 176, 'l', 1, values, "i").l;
}

static void * /* NewCharArray */
slot_177(void *native, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_call(native, 177, 'l', 1, values, "i").l;
}

static void * /* NewShortArray */
slot_178(void *native, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_call(native, 178, 'l', 1, values, "i").l;
}

static void * /* NewIntArray */
slot_179(void *native, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_call(native, 179, 'l', 1, values, "i").l;
}

static void * /* NewLongArray */
slot_180(void *native, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_call(native, 180, 'l', 1, values, "i").l;
}

static void * /* NewFloatArray */
slot_181(void *native, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_call(native, 181, 'l', 1, values, "i").l;
}

static void * /* NewDoubleArray */
slot_182(void *native, int32_t a)
{
    const Value values[] = {{.i = a}};
    return jni_call(native, 182, 'l', 1, values, "i").l;
}

static void * /* GetBooleanArrayElements */
slot_183(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 183, 'l', 2, values, "ll").l;
}

static void * /* GetByteArrayElements */
slot_184(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 184, 'l', 2, values, "ll").l;
}

static void * /* GetCharArrayElements */
slot_185(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 185, 'l', 2, values, "ll").l;
}

static void * /* GetShortArrayElements */
slot_186(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 186, 'l', 2, values, "ll").l;
}

static void * /* GetIntArrayElements */
slot_187(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 187, 'l', 2, values, "ll").l;
}

static void * /* GetLongArrayElements */
slot_188(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 188, 'l', 2, values, "ll").l;
}

static void * /* GetFloatArrayElements */
slot_189(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 189, 'l', 2, values, "ll").l;
}

static void * /* GetDoubleArrayElements */
slot_190(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 190, 'l', 2, values, "ll").l;
}

static void /* ReleaseBooleanArrayElements */
slot_191(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 191, 'v', 3, values, "lli");
}

static void /* ReleaseByteArrayElements */
slot_192(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 192, 'v', 3, values, "lli");
}

static void /* ReleaseCharArrayElements */
slot_193(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 193, 'v', 3, values, "lli");
}

static void /* ReleaseShortArrayElements */
slot_194(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 194, 'v', 3, values, "lli");
}

static void /* ReleaseIntArrayElements */
slot_195(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 195, 'v', 3, values, "lli");
}

static void /* ReleaseLongArrayElements */
slot_196(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 196, 'v', 3, values, "lli");
}

static void /* ReleaseFloatArrayElements */
slot_197(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 197, 'v', 3, values, "lli");
}

static void /* ReleaseDoubleArrayElements */
slot_198(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 198, 'v', 3, values, "lli");
}

static void /* GetBooleanArrayRegion */
slot_199(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 199, 'v', 4, values, "liil");
}

static void /* GetByteArrayRegion */
slot_200(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 200, 'v', 4, values, "liil");
}

static void /* GetCharArrayRegion */
slot_201(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 201, 'v', 4, values, "liil");
}

static void /* GetShortArrayRegion */
slot_202(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 202, 'v', 4, values, "liil");
}

static void /* GetIntArrayRegion */
slot_203(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 203, 'v', 4, values, "liil");
}

static void /* GetLongArrayRegion */
slot_204(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 204, 'v', 4, values, "liil");
}

static void /* GetFloatArrayRegion */
slot_205(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 205, 'v', 4, values, "liil");
}

static void /* GetDoubleArrayRegion */
slot_206(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 206, 'v', 4, values, "liil");
}

static void /* SetBooleanArrayRegion */
slot_207(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 207, 'v', 4, values, "liil");
}

static void /* SetByteArrayRegion */
slot_208(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 208, 'v', 4, values, "liil");
}

static void /* SetCharArrayRegion */
slot_209(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 209, 'v', 4, values, "liil");
}

static void /* SetShortArrayRegion */
slot_210(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 210, 'v', 4, values, "liil");
}

static void /* SetIntArrayRegion */
slot_211(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 211, 'v', 4, values, "liil");
}

static void /* SetLongArrayRegion */
slot_212(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 212, 'v', 4, values, "liil");
}

static void /* SetFloatArrayRegion */
slot_213(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 213, 'v', 4, values, "liil");
}

static void /* SetDoubleArrayRegion */
slot_214(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 214, 'v', 4, values, "liil");
}

static int32_t /* RegisterNatives */
slot_215(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    return jni_call(native, 215, 'i', 3, values, "lli").i;
}

static int32_t /* UnregisterNatives */
slot_216(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 216, 'i', 1, values, "l").i;
}

static int32_t /* MonitorEnter */
slot_217(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 217, 'i', 1, values, "l").i;
}

static int32_t /* MonitorExit */
slot_218(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 218, 'i', 1, values, "l").i;
}

static void /* GetStringRegion */
slot_220(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 220, 'v', 4, values, "liil");
}

static void /* GetStringUTFRegion */
slot_221(void *native, void *a, int32_t b, int32_t c, void *d)
{
    const Value values[] = {{.l = a}, {.i = b}, {.i = c}, {.l = d}};
    jni_call(native, 221, 'v', 4, values, "liil");
}

static void * /* GetPrimitiveArrayCritical */
slot_222(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 222, 'l', 2, values, "ll").l;
}

static void /* ReleasePrimitiveArrayCritical */
slot_223(void *native, void *a, void *b, int32_t c)
{
    const Value values[] = {{.l = a}, {.l = b}, {.i = c}};
    jni_call(native, 223, 'v', 3, values, "lli");
}

static void * /* GetStringCritical */
slot_224(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    return jni_call(native, 224, 'l', 2, values, "ll").l;
}

static void /* ReleaseStringCritical */
slot_225(void *native, void *a, void *b)
{
    const Value values[] = {{.l = a}, {.l = b}};
    jni_call(native, 225, 'v', 2, values, "ll");
}

static void * /* NewDirectByteBuffer */
slot_229(void *native, void *a, int64_t b)
{
    const Value values[] = {{.l = a}, {.j = b}};
    return jni_call(native, 229, 'l', 2, values, "lj").l;
}

static void * /* GetDirectBufferAddress */
slot_230(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 230, 'l', 1, values, "l").l;
}

static int64_t /* GetDirectBufferCapacity */
slot_231(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 231, 'j', 1, values, "l").j;
}

static void * /* GetModule */
slot_233(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 233, 'l', 1, values, "l").l;
}

static int64_t /* GetStringUTFLengthAsLong */
slot_235(void *native, void *a)
{
    const Value values[] = {{.l = a}};
    return jni_call(native, 235, 'j', 1, values, "l").j;
}

const void *jni_functions[JNI_SLOTS] = {
    [4] = jni_get_version,
    [5] = slot_5,
    [6] = slot_6,
    [7] = slot_7,
    [8] = slot_8,
    [9] = slot_9,
    [10] = slot_10,
    [11] = slot_11,
    [12] = slot_12,
    [13] = jni_throw,
    [14] = slot_14,
    [15] = jni_exception_occurred,
    [16] = slot_16,
    [17] = jni_exception_clear,
    [18] = slot_18,
    [19] = jni_push_local_frame,
    [20] = jni_pop_local_frame,
    [21] = jni_new_global_ref,
    [22] = jni_delete_global_ref,
    [23] = jni_delete_local_ref,
    [24] = jni_is_same_object,
    [25] = jni_new_local_ref,
    [26] = jni_ensure_local_capacity,
    [27] = slot_27,
    [28] = slot_28,
    [29] = slot_29,
    [30] = slot_30,
    [31] = jni_get_object_class,
    [32] = slot_32,
    [33] = slot_33,
    [34] = slot_34,
    [35] = slot_35,
    [36] = slot_36,
    [37] = slot_37,
    [38] = slot_38,
    [39] = slot_39,
    [40] = slot_40,
    [41] = slot_41,
    [42] = slot_42,
    [43] = slot_43,
    [44] = slot_44,
    [45] = slot_45,
    [46] = slot_46,
    [47] = slot_47,
    [48] = slot_48,
    [49] = slot_49,
    [50] = slot_50,
    [51] = slot_51,
    [52] = slot_52,
    [53] = slot_53,
    [54] = slot_54,
    [55] = slot_55,
    [56] = slot_56,
    [57] = slot_57,
    [58] = slot_58,
    [59] = slot_59,
    [60] = slot_60,
    [61] = slot_61,
    [62] = slot_62,
    [63] = slot_63,
    [64] = slot_64,
    [65] = slot_65,
    [66] = slot_66,
    [67] = slot_67,
    [68] = slot_68,
    [69] = slot_69,
    [70] = slot_70,
    [71] = slot_71,
    [72] = slot_72,
    [73] = slot_73,
    [74] = slot_74,
    [75] = slot_75,
    [76] = slot_76,
    [77] = slot_77,
    [78] = slot_78,
    [79] = slot_79,
    [80] = slot_80,
    [81] = slot_81,
    [82] = slot_82,
    [83] = slot_83,
    [84] = slot_84,
    [85] = slot_85,
    [86] = slot_86,
    [87] = slot_87,
    [88] = slot_88,
    [89] = slot_89,
    [90] = slot_90,
    [91] = slot_91,
    [92] = slot_92,
    [93] = slot_93,
    [94] = slot_94,
    [95] = slot_95,
    [96] = slot_96,
    [97] = slot_97,
    [98] = slot_98,
    [99] = slot_99,
    [100] = slot_100,
    [101] = slot_101,
    [102] = slot_102,
    [103] = slot_103,
    [104] = slot_104,
    [105] = slot_105,
    [106] = slot_106,
    [107] = slot_107,
    [108] = slot_108,
    [109] = slot_109,
    [110] = slot_110,
    [111] = slot_111,
    [112] = slot_112,
    [113] = slot_113,
    [114] = slot_114,
    [115] = slot_115,
    [116] = slot_116,
    [117] = slot_117,
    [118] = slot_118,
    [119] = slot_119,
    [120] = slot_120,
    [121] = slot_121,
    [122] = slot_122,
    [123] = slot_123,
    [124] = slot_124,
    [125] = slot_125,
    [126] = slot_126,
    [127] = slot_127,
    [128] = slot_128,
    [129] = slot_129,
    [130] = slot_130,
    [131] = slot_131,
    [132] = slot_132,
    [133] = slot_133,
    [134] = slot_134,
    [135] = slot_135,
    [136] = slot_136,
    [137] = slot_137,
    [138] = slot_138,
    [139] = slot_139,
    [140] = slot_140,
    [141] = slot_141,
    [142] = slot_142,
    [143] = slot_143,
    [144] = slot_144,
    [145] = slot_145,
    [146] = slot_146,
    [147] = slot_147,
    [148] = slot_148,
    [149] = slot_149,
    [150] = slot_150,
    [151] = slot_151,
    [152] = slot_152,
    [153] = slot_153,
    [154] = slot_154,
    [155] = slot_155,
    [156] = slot_156,
    [157] = slot_157,
    [158] = slot_158,
    [159] = slot_159,
    [160] = slot_160,
    [161] = slot_161,
    [162] = slot_162,
    [163] = slot_163,
    [164] = slot_164,
    [165] = slot_165,
    [166] = slot_166,
    [167] = slot_167,
    [168] = slot_168,
    [169] = slot_169,
    [170] = slot_170,
    [171] = slot_171,
    [172] = slot_172,
    [173] = slot_173,
    [174] = slot_174,
    [175] = slot_175,
    [176] = slot_176,
    [177] = slot_177,
    [178] = slot_178,
    [179] = slot_179,
    [180] = slot_180,
    [181] = slot_181,
    [182] = slot_182,
    [183] = slot_183,
    [184] = slot_184,
    [185] = slot_185,
    [186] = slot_186,
    [187] = slot_187,
    [188] = slot_188,
    [189] = slot_189,
    [190] = slot_190,
    [191] = slot_191,
    [192] = slot_192,
    [193] = slot_193,
    [194] = slot_194,
    [195] = slot_195,
    [196] = slot_196,
    [197] = slot_197,
    [198] = slot_198,
    [199] = slot_199,
    [200] = slot_200,
    [201] = slot_201,
    [202] = slot_202,
    [203] = slot_203,
    [204] = slot_204,
    [205] = slot_205,
    [206] = slot_206,
    [207] = slot_207,
    [208] = slot_208,
    [209] = slot_209,
    [210] = slot_210,
    [211] = slot_211,
    [212] = slot_212,
    [213] = slot_213,
    [214] = slot_214,
    [215] = slot_215,
    [216] = slot_216,
    [217] = slot_217,
    [218] = slot_218,
    [219] = jni_get_java_vm,
    [220] = slot_220,
    [221] = slot_221,
    [222] = slot_222,
    [223] = slot_223,
    [224] = slot_224,
    [225] = slot_225,
    [226] = jni_new_weak_global_ref,
    [227] = jni_delete_weak_global_ref,
    [228] = jni_exception_check,
    [229] = slot_229,
    [230] = slot_230,
    [231] = slot_231,
    [232] = jni_get_object_ref_type,
    [233] = slot_233,
    [234] = jni_is_virtual_thread,
    [235] = slot_235,
};

const char *const jni_names[JNI_SLOTS] = {
    [4] = "GetVersion",
    [5] = "DefineClass",
    [6] = "FindClass",
    [7] = "FromReflectedMethod",
    [8] = "FromReflectedField",
    [9] = "ToReflectedMethod",
    [10] = "GetSuperclass",
    [11] = "IsAssignableFrom",
    [12] = "ToReflectedField",
    [13] = "Throw",
    [14] = "ThrowNew",
    [15] = "ExceptionOccurred",
    [16] = "ExceptionDescribe",
    [17] = "ExceptionClear",
    [18] = "FatalError",
    [19] = "PushLocalFrame",
    [20] = "PopLocalFrame",
    [21] = "NewGlobalRef",
    [22] = "DeleteGlobalRef",
    [23] = "DeleteLocalRef",
    [24] = "IsSameObject",
    [25] = "NewLocalRef",
    [26] = "EnsureLocalCapacity",
    [27] = "AllocObject",
    [28] = "NewObject",
    [29] = "NewObjectV",
    [30] = "NewObjectA",
    [31] = "GetObjectClass",
    [32] = "IsInstanceOf",
    [33] = "GetMethodID",
    [34] = "CallObjectMethod",
    [35] = "CallObjectMethodV",
    [36] = "CallObjectMethodA",
    [37] = "CallBooleanMethod",
    [38] = "CallBooleanMethodV",
    [39] = "CallBooleanMethodA",
    [40] = "CallByteMethod",
    [41] = "CallByteMethodV",
    [42] = "CallByteMethodA",
    [43] = "CallCharMethod",
    [44] = "CallCharMethodV",
    [45] = "CallCharMethodA",
    [46] = "CallShortMethod",
    [47] = "CallShortMethodV",
    [48] = "CallShortMethodA",
    [49] = "CallIntMethod",
    [50] = "CallIntMethodV",
    [51] = "CallIntMethodA",
    [52] = "CallLongMethod",
    [53] = "CallLongMethodV",
    [54] = "CallLongMethodA",
    [55] = "CallFloatMethod",
    [56] = "CallFloatMethodV",
    [57] = "CallFloatMethodA",
    [58] = "CallDoubleMethod",
    [59] = "CallDoubleMethodV",
    [60] = "CallDoubleMethodA",
    [61] = "CallVoidMethod",
    [62] = "CallVoidMethodV",
    [63] = "CallVoidMethodA",
    [64] = "CallNonvirtualObjectMethod",
    [65] = "CallNonvirtualObjectMethodV",
    [66] = "CallNonvirtualObjectMethodA",
    [67] = "CallNonvirtualBooleanMethod",
    [68] = "CallNonvirtualBooleanMethodV",
    [69] = "CallNonvirtualBooleanMethodA",
    [70] = "CallNonvirtualByteMethod",
    [71] = "CallNonvirtualByteMethodV",
    [72] = "CallNonvirtualByteMethodA",
    [73] = "CallNonvirtualCharMethod",
    [74] = "CallNonvirtualCharMethodV",
    [75] = "CallNonvirtualCharMethodA",
    [76] = "CallNonvirtualShortMethod",
    [77] = "CallNonvirtualShortMethodV",
    [78] = "CallNonvirtualShortMethodA",
    [79] = "CallNonvirtualIntMethod",
    [80] = "CallNonvirtualIntMethodV",
    [81] = "CallNonvirtualIntMethodA",
    [82] = "CallNonvirtualLongMethod",
    [83] = "CallNonvirtualLongMethodV",
    [84] = "CallNonvirtualLongMethodA",
    [85] = "CallNonvirtualFloatMethod",
    [86] = "CallNonvirtualFloatMethodV",
    [87] = "CallNonvirtualFloatMethodA",
    [88] = "CallNonvirtualDoubleMethod",
    [89] = "CallNonvirtualDoubleMethodV",
    [90] = "CallNonvirtualDoubleMethodA",
    [91] = "CallNonvirtualVoidMethod",
    [92] = "CallNonvirtualVoidMethodV",
    [93] = "CallNonvirtualVoidMethodA",
    [94] = "GetFieldID",
    [95] = "GetObjectField",
    [96] = "GetBooleanField",
    [97] = "GetByteField",
    [98] = "GetCharField",
    [99] = "GetShortField",
    [100] = "GetIntField",
    [101] = "GetLongField",
    [102] = "GetFloatField",
    [103] = "GetDoubleField",
    [104] = "SetObjectField",
    [105] = "SetBooleanField",
    [106] = "SetByteField",
    [107] = "SetCharField",
    [108] = "SetShortField",
    [109] = "SetIntField",
    [110] = "SetLongField",
    [111] = "SetFloatField",
    [112] = "SetDoubleField",
    [113] = "GetStaticMethodID",
    [114] = "CallStaticObjectMethod",
    [115] = "CallStaticObjectMethodV",
    [116] = "CallStaticObjectMethodA",
    [117] = "CallStaticBooleanMethod",
    [118] = "CallStaticBooleanMethodV",
    [119] = "CallStaticBooleanMethodA",
    [120] = "CallStaticByteMethod",
    [121] = "CallStaticByteMethodV",
    [122] = "CallStaticByteMethodA",
    [123] = "CallStaticCharMethod",
    [124] = "CallStaticCharMethodV",
    [125] = "CallStaticCharMethodA",
    [126] = "CallStaticShortMethod",
    [127] = "CallStaticShortMethodV",
    [128] = "CallStaticShortMethodA",
    [129] = "CallStaticIntMethod",
    [130] = "CallStaticIntMethodV",
    [131] = "CallStaticIntMethodA",
    [132] = "CallStaticLongMethod",
    [133] = "CallStaticLongMethodV",
    [134] = "CallStaticLongMethodA",
    [135] = "CallStaticFloatMethod",
    [136] = "CallStaticFloatMethodV",
    [137] = "CallStaticFloatMethodA",
    [138] = "CallStaticDoubleMethod",
    [139] = "CallStaticDoubleMethodV",
    [140] = "CallStaticDoubleMethodA",
    [141] = "CallStaticVoidMethod",
    [142] = "CallStaticVoidMethodV",
    [143] = "CallStaticVoidMethodA",
    [144] = "GetStaticFieldID",
    [145] = "GetStaticObjectField",
    [146] = "GetStaticBooleanField",
    [147] = "GetStaticByteField",
    [148] = "GetStaticCharField",
    [149] = "GetStaticShortField",
    [150] = "GetStaticIntField",
    [151] = "GetStaticLongField",
    [152] = "GetStaticFloatField",
    [153] = "GetStaticDoubleField",
    [154] = "SetStaticObjectField",
    [155] = "SetStaticBooleanField",
    [156] = "SetStaticByteField",
    [157] = "SetStaticCharField",
    [158] = "SetStaticShortField",
    [159] = "SetStaticIntField",
    [160] = "SetStaticLongField",
    [161] = "SetStaticFloatField",
    [162] = "SetStaticDoubleField",
    [163] = "NewString",
    [164] = "GetStringLength",
    [165] = "GetStringChars",
    [166] = "ReleaseStringChars",
    [167] = "NewStringUTF",
    [168] = "GetStringUTFLength",
    [169] = "GetStringUTFChars",
    [170] = "ReleaseStringUTFChars",
    [171] = "GetArrayLength",
    [172] = "NewObjectArray",
    [173] = "GetObjectArrayElement",
    [174] = "SetObjectArrayElement",
    [175] = "NewBooleanArray",
    [176] = "NewByteArray",
    [177] = "NewCharArray",
    [178] = "NewShortArray",
    [179] = "NewIntArray",
    [180] = "NewLongArray",
    [181] = "NewFloatArray",
    [182] = "NewDoubleArray",
    [183] = "GetBooleanArrayElements",
    [184] = "GetByteArrayElements",
    [185] = "GetCharArrayElements",
    [186] = "GetShortArrayElements",
    [187] = "GetIntArrayElements",
    [188] = "GetLongArrayElements",
    [189] = "GetFloatArrayElements",
    [190] = "GetDoubleArrayElements",
    [191] = "ReleaseBooleanArrayElements",
    [192] = "ReleaseByteArrayElements",
    [193] = "ReleaseCharArrayElements",
    [194] = "ReleaseShortArrayElements",
    [195] = "ReleaseIntArrayElements",
    [196] = "ReleaseLongArrayElements",
    [197] = "ReleaseFloatArrayElements",
    [198] = "ReleaseDoubleArrayElements",
    [199] = "GetBooleanArrayRegion",
    [200] = "GetByteArrayRegion",
    [201] = "GetCharArrayRegion",
    [202] = "GetShortArrayRegion",
    [203] = "GetIntArrayRegion",
    [204] = "GetLongArrayRegion",
    [205] = "GetFloatArrayRegion",
    [206] = "GetDoubleArrayRegion",
    [207] = "SetBooleanArrayRegion",
    [208] = "SetByteArrayRegion",
    [209] = "SetCharArrayRegion",
    [210] = "SetShortArrayRegion",
    [211] = "SetIntArrayRegion",
    [212] = "SetLongArrayRegion",
    [213] = "SetFloatArrayRegion",
    [214] = "SetDoubleArrayRegion",
    [215] = "RegisterNatives",
    [216] = "UnregisterNatives",
    [217] = "MonitorEnter",
    [218] = "MonitorExit",
    [219] = "GetJavaVM",
    [220] = "GetStringRegion",
    [221] = "GetStringUTFRegion",
    [222] = "GetPrimitiveArrayCritical",
    [223] = "ReleasePrimitiveArrayCritical",
    [224] = "GetStringCritical",
    [225] = "ReleaseStringCritical",
    [226] = "NewWeakGlobalRef",
    [227] = "DeleteWeakGlobalRef",
    [228] = "ExceptionCheck",
    [229] = "NewDirectByteBuffer",
    [230] = "GetDirectBufferAddress",
    [231] = "GetDirectBufferCapacity",
    [232] = "GetObjectRefType",
    [233] = "GetModule",
    [234] = "IsVirtualThread",
    [235] = "GetStringUTFLengthAsLong",
};

const uint8_t jni_despite_exception[JNI_SLOTS] = {
    [4] = 1,
    [15] = 1,
    [16] = 1,
    [17] = 1,
    [18] = 1,
    [19] = 1,
    [20] = 1,
    [21] = 1,
    [22] = 1,
    [23] = 1,
    [24] = 1,
    [25] = 1,
    [26] = 1,
    [166] = 1,
    [170] = 1,
    [191] = 1,
    [192] = 1,
    [193] = 1,
    [194] = 1,
    [195] = 1,
    [196] = 1,
    [197] = 1,
    [198] = 1,
    [218] = 1,
    [219] = 1,
    [223] = 1,
    [225] = 1,
    [227] = 1,
    [228] = 1,
    [232] = 1,
};
