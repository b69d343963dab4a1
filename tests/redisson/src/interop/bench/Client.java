package interop.bench;

/** One who takes a permit of a few, works for no time, and gives it back. */
interface Client {
    /** Waits for as long as it takes. */
    void take();

    void giveBack();

    /** How many permits could be had now, while nobody else asks. */
    int available();
}
