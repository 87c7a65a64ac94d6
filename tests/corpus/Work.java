import java.util.ArrayList;
import java.util.List;

/** Allocates and collects for a moment, so that a region made from it has counts, times and sizes in it. */
public final class Work {
    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        List<byte[]> kept = new ArrayList<>();
        Thread worker = new Thread(() -> allocate(rounds * 500, kept), "worker");
        worker.setDaemon(true);
        worker.start();
        worker.join();
        System.gc();
        allocate(rounds * 500, kept);
        Thread.sleep(120); // two visits of HotSpot's own sampler
    }

    private static void allocate(int blocks, List<byte[]> kept) {
        for (int i = 0; i < blocks; i++) {
            byte[] block = new byte[16 * 1024];
            if (i % 100 == 0) {
                kept.add(block);
            }
            if (kept.size() > 200) {
                kept.clear();
            }
        }
    }
}
