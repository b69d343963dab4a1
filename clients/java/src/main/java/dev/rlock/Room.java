package dev.rlock;

/**
 * A call of the program may come deep in a recursion, and {@link StackOverflowError} then at any
 * line: in the midst of what the session, its timer or Lettuce have begun, and nothing mends those.
 * So a call looks first, and once, whether there is room for all that it does; if not, the error
 * comes before anything has begun.
 */
final class Room {
    /** Of about 300 bytes each, or half as much when compiled: several times what a call takes. */
    private static final int FRAMES = 200;

    private Room() {}

    static void take() {
        if (deeper(FRAMES, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) == 0) {
            throw new AssertionError(); // it is used, so it is not left out
        }
    }

    private static long deeper(
            int left, long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l,
            long m, long n, long o) {
        long below = left == 0 ? 1 : deeper(left - 1, b, c, d, e, f, g, h, i, j, k, l, m, n, o, a);
        return below | a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l ^ m ^ n ^ o;
    }
}
