/** What good_agent.c looks at: the same as slots.py. */
public class Slots {
    public static int total = 5;
    public long field = 3;
    public Object next;

    public Slots(Object next) {
        this.next = next;
    }

    public static void stopped() {
    }

    public static void stop(int number, String text) {
        long big = 1L << 40;
        double real = 1.5;
        float small = 0.5f;
        RuntimeException error = new RuntimeException("stop");
        stopped();
        System.out.println(number + " " + text + " " + big + " " + real + " " + small);
    }

    public void go() {
        stop(7, "a text");
    }

    public static void main(String[] arguments) throws Exception {
        Object lock = new Object();
        Thread worker = new Thread(() -> {
            synchronized (lock) {
                while (true) {
                    try {
                        lock.wait();
                    } catch (InterruptedException interrupted) {
                        continue;
                    }
                }
            }
        }, "worker");
        worker.setDaemon(true);
        worker.start();
        while (worker.getState() != Thread.State.WAITING) {
            Thread.sleep(1);
        }
        new Slots(new Slots(new Slots(new byte[] {1, 2, 3}))).go();
    }
}
