"""The functions of a JNIEnv of which each type has one: C that calls them, and in two languages what they call."""

from __future__ import annotations

from vmscope.tool.jni.table import LETTERS, PRIMITIVES

# Of each type: the value that is handed over, and what Java and Python make of it
VALUES = {
    "object": ("basket", "x", "x"),
    "boolean": ("JNI_TRUE", "!x", "not x"),
    "byte": ("-128", "(byte) (x + 1)", "x + 1"),
    "char": ("0xfffe", "(char) (x + 1)", "chr(ord(x) + 1)"),
    "short": ("-32768", "(short) (x + 1)", "x + 1"),
    "int": ("2147483646", "x + 1", "x + 1"),
    "long": ("-9223372036854775807LL", "x - 1", "x - 1"),
    "float": ("-1.5f", "x * 2", "x * 2"),
    "double": ("1e100", "x / 1e98", "x / 1e98"),
}
ZEROS = {"object": "None", "boolean": "False", "char": "'\\0'", "float": "0.0", "double": "0.0"}
JAVA = {"object": "Object"}


def _java_type(each: str) -> str:
    return JAVA.get(each, each)


def java_source() -> str:
    members = []
    for each, (_, java, _) in VALUES.items():
        kind, name = _java_type(each), each.capitalize()
        members.append(
            f"public {kind} the{name}; public static {kind} our{name};"
            f"public {kind} same{name}({kind} x) {{ return {java}; }}"
            f"public static {kind} plain{name}({kind} x) {{ return {java}; }}"
        )
    overridden = "".join(
        f"public {_java_type(each)} same{each.capitalize()}({_java_type(each)} x) {{ return x; }}"
        for each in VALUES
        if each != "object"
    )
    return f"""
package shop;
class Families {{
    {" ".join(members)}
    public void sameVoid(int x) {{ theInt += x; }}
    public static void plainVoid(int x) {{ ourInt += x; }}
}}
class Derived extends Families {{ {overridden} public void sameVoid(int x) {{ theInt -= x; }} }}
"""


def python_source() -> str:
    lines = ["class Families:"]
    derived = ["class Derived(Families):"]
    for each, (_, _, python) in VALUES.items():
        name = each.capitalize()
        lines += [
            f"    our{name} = {ZEROS.get(each, '0')}",
            f"    def same{name}(self, x): return {python}",
            f"    @staticmethod\n    def plain{name}(x): return {python}",
        ]
        if each != "object":
            derived.append(f"    def same{name}(self, x): return x")
    lines.append("    def __init__(self):")
    lines += [f"        self.the{each.capitalize()} = {ZEROS.get(each, '0')}" for each in VALUES]
    lines += ["    def sameVoid(self, x): self.theInt += x"]
    lines += ["    @staticmethod\n    def plainVoid(x): Families.ourInt += x"]
    derived += ["    def sameVoid(self, x): self.theInt -= x"]
    return "\n".join([*lines, "", *derived, ""])


def c_source() -> str:
    parts = [_calls(each, letter) for each, letter in LETTERS.items()]
    parts += [_arrays(each) for each in PRIMITIVES]
    bodies = "\n".join(f"    {each.capitalize()}_calls();" for each in LETTERS)
    bodies += "\n" + "\n".join(f"    {each.capitalize()}_array();" for each in PRIMITIVES)
    return "\n".join(["static jclass Families, Derived; static jobject of, other;", *parts, FAMILIES % bodies])


FAMILIES = """
static void families(void) {
    Families = E->FindClass(env, "shop/Families");
    Derived = E->FindClass(env, "shop/Derived");
    of = E->NewObject(env, Families, E->GetMethodID(env, Families, "<init>", "()V"));
    other = E->NewObject(env, Derived, E->GetMethodID(env, Derived, "<init>", "()V"));
%s
}
"""


def _calls(each: str, letter: str) -> str:
    """Three kinds of calls in three forms, and the fields."""
    name = each.capitalize()
    kind = "jint" if each == "void" else f"j{each}"
    signature = {"L": "(Ljava/lang/Object;)Ljava/lang/Object;", "V": "(I)V"}.get(letter, f"({letter}){letter}")
    field_type = "Ljava/lang/Object;" if letter == "L" else letter
    value = "11" if each == "void" else VALUES[each][0]
    member = "i" if each == "void" else letter.lower()
    passed = f"({'int' if each in ('boolean', 'byte', 'short', 'char') else kind}){value}"
    forms = []
    for prefix, receiver, method in (
        ("Call", "jobject thing", "thing"),
        ("CallNonvirtual", "jobject thing, jclass klass", "thing, klass"),
        ("CallStatic", "jclass klass", "klass"),
    ):
        call = f"E->{prefix}{name}MethodV(env, {method}, id, list)"
        body = f"{call}; {kind} found = 0;" if each == "void" else f"{kind} found = {call};"
        forms.append(
            f"static {kind} {prefix}{name}_v({receiver}, jmethodID id, ...) {{ va_list list; va_start(list, id);"
            f" {body} va_end(list); return found; }}"
        )
    rows = []
    for prefix, receiver, identity in (
        ("Call", "of", "same"),
        ("Call", "other", "same"),
        ("CallNonvirtual", "other, Families", "same"),
        ("CallStatic", "Families", "plain"),
        ("CallStatic", "Derived", "plain"),
    ):
        for call in (
            f"E->{prefix}{name}Method(env, {receiver}, {identity}, {passed})",
            f"{prefix}{name}_v({receiver}, {identity}, {passed})",
            f"E->{prefix}{name}MethodA(env, {receiver}, {identity}, &value)",
        ):
            if each == "void":
                seen = (
                    "E->GetStaticIntField(env, Families, our)"
                    if identity == "plain"
                    else f"E->GetIntField(env, {receiver.split(',')[0]}, count)"
                )
                rows.append(f"({call}, {seen})")
            else:
                rows.append(_number(each, call))
    fields = ""
    if each != "void":
        fields = f"""
    jfieldID own = E->GetFieldID(env, Families, "the{name}", "{field_type}");
    jfieldID our = E->GetStaticFieldID(env, Families, "our{name}", "{field_type}");
    E->Set{name}Field(env, other, own, {value});
    E->SetStatic{name}Field(env, Families, our, {value});
    SAY("{name} fields", {_number(each, f"E->Get{name}Field(env, other, own)")},
        {_number(each, f"E->GetStatic{name}Field(env, Derived, our)")});"""
    else:
        fields = """
    jfieldID count = E->GetFieldID(env, Families, "theInt", "I");
    jfieldID our = E->GetStaticFieldID(env, Families, "ourInt", "I");
    E->SetStaticIntField(env, Families, our, 0);"""
    rest = ",\n        ".join(rows)
    says = f'    SAY("{name}", {rest});'
    first, last = (fields, says) if each == "void" else (says, fields)
    return f"""
{chr(10).join(forms)}
static void {name}_calls(void) {{
    jmethodID same = E->GetMethodID(env, Families, "same{name}", "{signature}");
    jmethodID plain = E->GetStaticMethodID(env, Families, "plain{name}", "{signature}");
    jvalue value;
    memset(&value, 0, sizeof value);
    value.{member} = {value};
{first}
{last}
}}"""


def _number(each: str, call: str) -> str:
    return f"E->IsSameObject(env, {call}, basket)" if each == "object" else f"(int64_t){call}"


def _arrays(each: str) -> str:
    """Made, read and written, copied back in each mode, and beyond the end."""
    name, kind = each.capitalize(), f"j{each}"
    return f"""
static void {name}_array(void) {{
    {kind}Array array = E->New{name}Array(env, 5);
    {kind} part[3] = {{1, 0, 1}}, seen[5], read[2];
    jboolean copy = 9;
    E->Set{name}ArrayRegion(env, array, 1, 3, part);
    {kind} *own = E->Get{name}ArrayElements(env, array, &copy);
    memcpy(seen, own, sizeof seen);
    own[0] = 1;
    E->Release{name}ArrayElements(env, array, own, JNI_COMMIT);
    E->Get{name}ArrayRegion(env, array, 0, 2, read);
    own[4] = 1;
    E->Release{name}ArrayElements(env, array, own, 0);
    own = E->Get{name}ArrayElements(env, array, NULL);
    int64_t last = own[4];
    own[2] = 1;
    E->Release{name}ArrayElements(env, array, own, JNI_ABORT);
    own = E->Get{name}ArrayElements(env, array, NULL);
    SAY("{name} array", E->GetArrayLength(env, array), copy, seen[0], seen[1], seen[2], seen[3], seen[4],
        read[0], read[1], last, own[2]);
    E->Release{name}ArrayElements(env, array, own, 0);
    E->Get{name}ArrayRegion(env, array, 4, 2, read);
    int outside = CLEAR();
    E->Set{name}ArrayRegion(env, array, -1, 1, read);
    SAY("{name} outside", outside, CLEAR());
}}"""
