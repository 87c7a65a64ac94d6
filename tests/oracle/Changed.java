/** What change_agent.c changes: the same as changed.py. */
public class Changed {
    static volatile boolean running, caught;

    public static int answer() {
        return 1;
    }

    public static void spin() {
        try {
            while (true) {
                running = true;
            }
        } catch (IllegalStateException stopped) {
            caught = true;
        }
    }

    public static void ready() {
    }

    public static void ended() {
    }

    public static void main(String[] arguments) throws Exception {
        Thread worker = new Thread(Changed::spin, "worker");
        worker.start();
        while (!running) {
            Thread.sleep(1);
        }
        ready();
        worker.join();
        if (caught && answer() == 1) {
            ended();
        }
    }
}
