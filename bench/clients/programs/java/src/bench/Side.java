package bench;

/** By what locks are taken. */
interface Side {
    Worker worker();

    interface Worker extends AutoCloseable {
        /** Acts once with the lock in its hands. */
        void turn(String key, Runnable act) throws Exception;

        @Override
        default void close() {}
    }
}
