import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Set;
import sun.jvmstat.monitor.ByteArrayMonitor;
import sun.jvmstat.monitor.IntegerMonitor;
import sun.jvmstat.monitor.LongMonitor;
import sun.jvmstat.monitor.Monitor;
import sun.jvmstat.monitor.MonitorException;
import sun.jvmstat.monitor.MonitoredHost;
import sun.jvmstat.monitor.MonitoredVm;
import sun.jvmstat.monitor.StringMonitor;
import sun.jvmstat.monitor.VmIdentifier;

/**
 * What the JDK's own reader finds in region files. Paths come in on standard input, one a line; for each path
 * one line of JSON goes out, an array: {@code [state, exception, message, entries]}. States: "readable";
 * "unready" (the reader waited for a target to finish its start-up and gave up); "heap" (what it did depends on
 * the heap of this JVM); "unreadable". An entry is
 * {@code [name, type, units, variability, vector length, supported, value, hexadecimal bytes of a string]}.
 */
public final class Jvmstat {
    private static final Set<String> WAITED_IN_VAIN = Set.of(
        "Could not synchronize with target",
        "Could Not Synchronize with target",
        "Could not find expected counter");

    public static void main(String[] args) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var utf8 = new OutputStreamWriter(System.out, StandardCharsets.UTF_8);
        try (var out = new PrintWriter(new BufferedWriter(utf8))) {
            for (String path = in.readLine(); path != null; path = in.readLine()) {
                out.println(read(path));
            }
        }
    }

    private static String read(String path) {
        try {
            var entries = new StringBuilder();
            for (Monitor monitor : open(path).findByPattern(".*")) {
                entries.append(entries.isEmpty() ? "" : ",").append(entry(monitor));
            }
            return "[\"readable\",\"\",\"\",[" + entries + "]]";
        } catch (OutOfMemoryError e) {
            return failure("heap", e);
        } catch (MonitorException e) {
            return failure(WAITED_IN_VAIN.contains(e.getMessage()) ? "unready" : "unreadable", e);
        } catch (Exception e) {
            return failure("unreadable", e);
        }
    }

    private static MonitoredVm open(String path) throws Exception {
        var id = new VmIdentifier(Path.of(path).toUri().toString());
        return MonitoredHost.getMonitoredHost(id).getMonitoredVm(id);
    }

    private static String failure(String state, Throwable e) {
        return "[\"" + state + "\",\"" + e.getClass().getSimpleName() + "\"," + quote(e.getMessage()) + ",[]]";
    }

    private static String entry(Monitor monitor) {
        String type;
        String value;
        String bytes = "";
        if (monitor instanceof StringMonitor string) {
            type = "B";
            value = quote(string.stringValue());
            bytes = hex(((ByteArrayMonitor) monitor).byteArrayValue());
        } else if (monitor instanceof LongMonitor number) {
            type = "J";
            value = Long.toString(number.longValue());
        } else {
            type = "I"; // of the prologue, not of an entry
            value = Integer.toString(((IntegerMonitor) monitor).intValue());
        }
        return "[" + quote(monitor.getName()) + ",\"" + type + "\",\"" + monitor.getUnits() + "\",\""
            + monitor.getVariability() + "\"," + monitor.getVectorLength() + "," + monitor.isSupported() + ","
            + value + ",\"" + bytes + "\"]";
    }

    private static String hex(byte[] bytes) {
        var text = new StringBuilder();
        for (byte b : bytes) {
            text.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
        }
        return text.toString();
    }

    private static String quote(String text) {
        if (text == null) {
            return "\"\"";
        }
        var quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
                quoted.append(c);
            } else {
                quoted.append(String.format("\\u%04x", (int) c));
            }
        }
        return quoted.append('"').toString();
    }
}
