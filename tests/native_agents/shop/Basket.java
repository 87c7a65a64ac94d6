package shop;

interface Able {
    void act();
}

class Basket {
    static class Line {
    }

    static int all = 12;
    int count;
    String word = "nothing";

    Basket() {
    }

    Basket(String word, int count) {
        this.word = word;
        this.count = count;
    }

    int total() {
        return count * 2;
    }

    String name() {
        return "basket";
    }

    static int price(int pieces) {
        return pieces * 3;
    }

    int fail(String why) {
        throw new IllegalStateException(why);
    }

    static double mixed(boolean z, byte b, char c, short s, int i, long j, float f, double d, String text, double a1,
            double a2, double a3, double a4, double a5, double a6, long j1, long j2, long j3, float last) {
        return d + (z ? 1 : 0) + b + c + s + i + j + f + text.length() + a1 * 10 + a2 * 100 + a3 * 1000 + a4 * 10000
                + a5 * 100000 + a6 * 1000000 + j1 + j2 * 2 + j3 * 3 + last;
    }

    @Override
    public String toString() {
        return word + " " + count;
    }
}

class Crate extends Basket {
    Crate() {
        count = 5;
    }

    @Override
    String name() {
        return "crate";
    }
}

class Main {
    public static void main(String[] arguments) {
    }
}
