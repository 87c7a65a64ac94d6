import java.util.ArrayList;
import java.util.List;

/** Two threads that compute, allocate, throw, wait for each other's monitor and park, for some milliseconds. */
public class Shop {
    private static final Object STOCK = new Object();
    static volatile Object sink;

    static long price(int n) {
        return n < 2 ? n : price(n - 1) + price(n - 2);
    }

    static void pack() {
        List<byte[]> boxes = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            boxes.add(new byte[5000]);
        }
        sink = boxes;
    }

    static void refuse(int order) {
        try {
            throw new IllegalStateException("Gr\u00f6\u00dfe " + order + " \u4f60\u597d \ud83d\ude00");
        } catch (IllegalStateException error) {
            sink = error;
        }
    }

    static void count() throws InterruptedException {
        synchronized (STOCK) {
            Thread.sleep(25);
        }
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000;
        Runnable work = () -> {
            for (int order = 0; System.nanoTime() < end; order++) {
                price(22);
                pack();
                refuse(order);
                try {
                    if (order % 10 == 0) {
                        count();
                    }
                } catch (InterruptedException error) {
                    return;
                }
            }
        };
        Thread first = new Thread(work, "w\u00f6rker"), second = new Thread(work, "worker \u4f60");
        first.start();
        second.start();
        first.join();
        second.join();
    }
}
