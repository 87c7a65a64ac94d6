import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.text.DecimalFormat;
import java.text.DecimalFormatSymbols;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import sun.jvmstat.monitor.HostIdentifier;
import sun.jvmstat.monitor.MonitoredHost;
import sun.jvmstat.monitor.MonitoredVm;
import sun.jvmstat.monitor.VmIdentifier;
import sun.tools.jstat.JStatLogger;
import sun.tools.jstat.OptionFinder;
import sun.tools.jstat.OptionFormat;
import sun.tools.jstat.OptionOutputFormatter;

/** Asks the classes behind jps and jstat, one question a line; each answer is a line, "!" before a refusal. */
public class JdkTools {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] question = line.split("\t", -1);
            String answer;
            try {
                answer = answer(question);
            } catch (Exception e) {
                answer = "!" + e.getMessage();
            }
            out.println(answer.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"));
        }
        out.flush();
    }

    private static String answer(String[] question) throws Exception {
        switch (question[0]) {
            case "number":
                return number(question[1], Double.longBitsToDouble(Long.parseUnsignedLong(question[2], 16)));
            case "vm":
                return vm(question[1]);
            case "host":
                return host(question[1]);
            case "order":
                return order(question[1]);
            case "jstat":
                return jstat(Arrays.copyOfRange(question, 1, question.length));
            case "jps":
                return jps(Arrays.copyOfRange(question, 1, question.length));
            case "snap":
                return snap(question[1], question[2], question[3].equals("v"));
            case "view":
                return view(question[1], question[2].equals("t"), question[3], question.length > 4 ? question[4] : "");
            default:
                throw new IllegalArgumentException(question[0]);
        }
    }

    private static String number(String pattern, double value) {
        DecimalFormat format = new DecimalFormat(pattern);
        DecimalFormatSymbols symbols = format.getDecimalFormatSymbols();
        symbols.setNaN("-");
        format.setDecimalFormatSymbols(symbols);
        return format.format(value);
    }

    private static String vm(String text) throws Exception {
        VmIdentifier id = new VmIdentifier(text);
        HostIdentifier host = new HostIdentifier(id);
        if (host.getScheme().equals("file")) {
            return "file " + new File(id.getURI());
        }
        boolean bare = id.getHost() == null || id.getHost().equals(id.getAuthority());
        return host.getScheme() + " " + id.getLocalVmId() + " " + (bare ? "" : id.getHost()) + " " + id.getMode();
    }

    private static String host(String text) throws Exception {
        HostIdentifier id = new HostIdentifier(text);
        String scheme = id.getScheme();
        if (scheme == null) {
            scheme = id.getHost().equals("localhost") ? "local" : "rmi";
        }
        return scheme + " " + id.getHost();
    }

    private static String order(String numbers) {
        HashSet<Integer> set = new HashSet<>();
        for (String number : numbers.split(" ")) {
            set.add(Integer.valueOf(number));
        }
        StringBuilder text = new StringBuilder();
        for (Integer number : set) {
            text.append(text.length() > 0 ? " " : "").append(number);
        }
        return text.toString();
    }

    private static String jstat(String[] line) throws Exception {
        sun.tools.jstat.Arguments found = new sun.tools.jstat.Arguments(line);
        if (found.isHelp()) {
            return "help";
        }
        if (found.isOptions()) {
            return "options";
        }
        StringBuilder text = new StringBuilder(found.isList() ? "list" : found.isSnap() ? "snap" : "sample");
        text.append(" ").append(found.specialOption()).append(" ").append(found.counterNames());
        text.append(" ").append(found.comparator().getClass().getSimpleName().charAt(0));
        text.append(found.isTimestamp() ? "t" : "").append(found.isVerbose() ? "v" : "");
        text.append(found.printConstants() ? "c" : "").append(found.printStrings() ? "s" : "");
        text.append(" ").append(found.headerRate()).append(" ").append(found.sampleInterval());
        text.append(" ").append(found.sampleCount()).append(" ").append(found.vmIdString());
        return text.toString();
    }

    private static String jps(String[] line) throws Exception {
        sun.tools.jps.Arguments found = new sun.tools.jps.Arguments(line);
        if (found.isHelp()) {
            return "help";
        }
        String letters = (found.showMainArgs() ? "m" : "") + (found.showLongPaths() ? "l" : "");
        letters += (found.showVmArgs() ? "v" : "") + (found.showVmFlags() ? "V" : "") + (found.isQuiet() ? "q" : "");
        return letters + " " + found.hostname();
    }

    private static String snap(String region, String names, boolean verbose) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(bytes, true, "UTF-8");
        JStatLogger logger = new JStatLogger(open(region));
        logger.printSnapShot(names, new sun.tools.jstat.Arguments(new String[] {"-snap", "1"}).comparator(), verbose, true, out);
        logger.printNames(names, new sun.tools.jstat.Arguments(new String[] {"-snap", "-d", "1"}).comparator(), false, out);
        return bytes.toString("UTF-8");
    }

    private static MonitoredVm open(String region) throws Exception {
        VmIdentifier id = new VmIdentifier("file://" + region);
        return MonitoredHost.getMonitoredHost(id).getMonitoredVm(id, 0);
    }

    private static String view(String option, boolean timestamp, String region, String file) throws Exception {
        List<URL> sources = new ArrayList<>();
        if (!file.isEmpty()) {
            sources.add(new File(file).toURI().toURL());
        }
        sources.add(new URL("jrt:/jdk.jcmd/sun/tools/jstat/resources/jstat_options"));
        sources.add(new URL("jrt:/jdk.jcmd/sun/tools/jstat/resources/jstat_unsupported_options"));
        OptionFormat format = new OptionFinder(sources).getOptionFormat(option, timestamp);
        if (format == null) {
            throw new IllegalArgumentException("Unknown option: -" + option);
        }
        OptionOutputFormatter formatter = new OptionOutputFormatter(open(region), format);
        return formatter.getHeader() + "\n" + formatter.getRow();
    }
}
