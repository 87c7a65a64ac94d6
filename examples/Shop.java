// The same shop on a JVM:  java examples/Shop.java [PORT]
// Prints its address on one line and serves until it is told to end.

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

public class Shop {
    record Line(Order order, int article) {}

    static class Order {
        final List<Line> lines = new ArrayList<>();

        Order(int number) {
            for (int i = 0; i < 500; i++) {
                lines.add(new Line(this, number * 7 % 100 + i));
            }
        }

        int total() {
            return lines.stream().mapToInt(Line::article).sum();
        }
    }

    public static void main(String[] args) throws Exception {
        int port = args.length > 0 ? Integer.parseInt(args[0]) : 0;
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 64);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            int number = Integer.parseInt(path.substring(path.lastIndexOf('/') + 1));
            byte[] body = ("{\"total\": " + new Order(number).total() + "}").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
        System.out.println("http://127.0.0.1:" + server.getAddress().getPort() + "/");
    }
}
