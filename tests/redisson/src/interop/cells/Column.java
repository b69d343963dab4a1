package interop.cells;

import interop.harness.Site;

/** Something that is tested of each kind of lock in each direction. */
public interface Column {
    String title();

    /** What is shown in the cell; it fails by throwing. */
    String check(Pair pair);

    default Site open() {
        return Site.open();
    }

    /** Whether all cells may be tested at the same time, for each takes long. */
    default boolean together() {
        return false;
    }
}
