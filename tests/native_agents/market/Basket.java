// A small market, line for line what ../market.py is: examples/native's agents look at both, lines and all.

package market;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;


class Empty extends Exception {
}


public class Basket {
    static final Object gate = new Object();
    static boolean arrived = false;

    Basket() {
        this.prices = new ArrayList<>();
    }
    int add(int article, Basket other) {
        int price = article * 3;
        this.prices.add(price);
        return price;
    }
    int total() throws Empty {
        if (this.prices.isEmpty())
            throw new Empty();
        return this.prices.stream().mapToInt(Integer::intValue).sum();
    }
    // of all baskets
    static int ask(Basket basket) {
        try {
            return basket.total();
        } catch (Empty empty) {
            return 0;
    }   }
    // of all baskets
    static int find(String word) throws Empty {
        try {
            return Integer.parseInt(word);
        } catch (NumberFormatException wrong) {
            throw new Empty();
    }   }
    // of all baskets
    static void look() {
        // The agents look at the heap here.
    }
    // of all baskets
    static List<Basket> fill(int count) {
        List<Basket> baskets = new ArrayList<>();
        while (baskets.size() < count) {
            baskets.add(new Basket());
            baskets.get(baskets.size() - 1).add(baskets.size(), baskets.get(0));
        } return baskets;
    }
    // of all baskets
    static void sell() {
        List<Basket> baskets = fill(10);
        look();
        baskets.subList(4, 10).clear();
        System.gc();
        look();
        baskets.addAll(fill(2));
        look();
        ask(baskets.get(0));
        ask(new Basket());
    }
    // of all baskets
    static Void serve() throws Exception {
        synchronized (gate) {
            arrived = true;
            gate.notifyAll();
            while (arrived)
                gate.wait();
        } return null; }
    // of all baskets
    static Void carry() throws Exception {
        Thread.sleep(600_000); return null;
    }
    // of all baskets
    static void open() throws Exception {
        start(Basket::serve, "clerk");
        start(Basket::carry, "porter");
        synchronized (gate) {
            while (!arrived)
                gate.wait();
        } System.out.println("open");
        System.in.read();
    }
    // of all baskets
    public static void main(String[] words) throws Exception {
        sell();
        try {
            find("apple");
        } catch (Empty empty) {
            System.gc();
        } for (int i = 0; i < 4; i++)
            System.gc();
        if (words.length > 0)
            open();
    }

    // What Python has in its library.
    static void start(Callable<Void> work, String name) {
        Thread thread = new Thread(new FutureTask<>(work), name);
        thread.setDaemon(true);
        thread.start();
    }

    final List<Integer> prices;
}
