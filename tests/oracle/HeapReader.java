import java.io.File;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.graalvm.visualvm.lib.jfluid.heap.FieldValue;
import org.graalvm.visualvm.lib.jfluid.heap.GCRoot;
import org.graalvm.visualvm.lib.jfluid.heap.Heap;
import org.graalvm.visualvm.lib.jfluid.heap.HeapFactory;
import org.graalvm.visualvm.lib.jfluid.heap.Instance;
import org.graalvm.visualvm.lib.jfluid.heap.JavaClass;
import org.graalvm.visualvm.lib.jfluid.heap.ObjectArrayInstance;
import org.graalvm.visualvm.lib.jfluid.heap.ObjectFieldValue;
import org.graalvm.visualvm.lib.jfluid.heap.PrimitiveArrayInstance;

/**
 * What VisualVM's own library finds in a heap dump, as lines of words between tabs. After the file, the names of classes
 * whose objects are shown one by one, with what they retain.
 */
public class HeapReader {
    public static void main(String[] arguments) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(arguments[0]));
        System.out.println("instances\t" + heap.getSummary().getTotalLiveInstances());
        for (JavaClass each : heap.getAllClasses()) {
            JavaClass base = each.getSuperClass();
            System.out.println("class\t" + each.getName() + "\t" + (base == null ? "" : base.getName()) + "\t"
                + each.getInstancesCount());
        }
        long references = 0;
        for (Iterator<?> all = heap.getAllInstancesIterator(); all.hasNext();) {
            references += check((Instance) all.next());
        }
        System.out.println("references\t" + references);
        Map<String, Integer> roots = new TreeMap<>();
        for (Object each : heap.getGCRoots()) {
            GCRoot root = (GCRoot) each;
            if (root.getInstance() == null) {
                System.out.println("dangling\troot\t" + root.getKind());
            }
            roots.merge(root.getKind(), 1, Integer::sum);
        }
        roots.forEach((kind, count) -> System.out.println("root\t" + kind + "\t" + count));
        for (Object each : heap.getJavaClassByName("java.lang.String").getInstances()) {
            Instance text = (Instance) each;
            System.out.println("text\t" + text.getInstanceId() + "\t" + HexFormat.of().formatHex(units(heap, text)));
        }
        for (int i = 1; i < arguments.length; i++) {
            for (Object each : heap.getJavaClassByName(arguments[i]).getInstances()) {
                show((Instance) each);
            }
        }
    }

    private static long check(Instance instance) {
        long count = 0;
        for (Object each : instance.getFieldValues()) {
            if (each instanceof ObjectFieldValue) {
                ObjectFieldValue value = (ObjectFieldValue) each;
                count++;
                if (!value.getValue().equals("0") && value.getInstance() == null) {
                    System.out.println("dangling\t" + instance.getJavaClass().getName() + "\t" + value.getField().getName());
                }
            }
        }
        if (instance instanceof ObjectArrayInstance) {
            for (Object each : ((ObjectArrayInstance) instance).getValues()) {
                count++;
                if (each == null) {
                    System.out.println("dangling\t" + instance.getInstanceId() + "\telement");
                }
            }
        }
        return count;
    }

    /** A text's characters in UTF-16, the higher byte first: decoded by what the classes' statics say. */
    private static byte[] units(Heap heap, Instance text) {
        JavaClass strings = heap.getJavaClassByName("java.lang.String");
        List<?> values = ((PrimitiveArrayInstance) text.getValueOfField("value")).getValues();
        boolean wide = text.getValueOfField("coder").equals(strings.getValueOfStaticField("UTF16"));
        if (!wide && !text.getValueOfField("coder").equals(strings.getValueOfStaticField("LATIN1"))) {
            throw new IllegalStateException("coder " + text.getValueOfField("coder"));
        }
        int shift = (Integer) heap.getJavaClassByName("java.lang.StringUTF16").getValueOfStaticField("HI_BYTE_SHIFT");
        byte[] units = new byte[wide ? values.size() : 2 * values.size()];
        for (int i = 0; i < values.size(); i++) {
            byte value = Byte.parseByte((String) values.get(i));
            units[wide ? (shift == 0 ? i ^ 1 : i) : 2 * i + 1] = value;
        }
        return units;
    }

    private static void show(Instance instance) {
        for (Object each : instance.getFieldValues()) {
            FieldValue value = (FieldValue) each;
            System.out.println("field\t" + instance.getInstanceId() + "\t" + value.getField().getName() + "\t" + value.getValue());
        }
        System.out.println("retained\t" + instance.getInstanceId() + "\t" + instance.getRetainedSize());
        System.out.println("reachable\t" + instance.getInstanceId() + "\t" + (instance.getNearestGCRootPointer() != null));
    }
}
