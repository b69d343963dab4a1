package interop.cases;

import interop.harness.Actor;
import interop.harness.Application;
import interop.harness.Check;
import interop.harness.Report;
import interop.harness.Resp;
import interop.harness.Site;
import interop.harness.Times;
import interop.kinds.Kind;
import interop.kinds.Kinds;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Future;

/** Redisson's fair lock keeps a queue of its own, and a channel for each who stands in it. */
public final class FairQueue extends Case {
    private static final String QUEUE = "redisson_lock_queue:{k}";

    @Override
    public String name() {
        return "fair queue";
    }

    @Override
    public void run(Report report) {
        holds(report, "a native release wakes the head of Redisson's fair queue, one after the other",
                site -> served(site, false));
        holds(report, "and in time all of them, though a native client waits too",
                site -> served(site, true));
    }

    /** Holds the lock while all queue up, and sees who comes in when it is let go. */
    private String served(Site site, boolean withNative) {
        Resp control = site.control();
        control.say("RLOCK.ACQUIRE k holder 60000");
        List<Actor> waiters = new ArrayList<>();
        List<String> order = Collections.synchronizedList(new ArrayList<>());
        List<Future<String>> served = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Application application = site.application();
            for (int j = 0; j < 2; j++) {
                Actor waiter = new Actor(thread ->
                        Kinds.FAIR.redisson(application, "k", Kind.Role.WAITER));
                String name = application.owner(0, waiter.threadId());
                queue(waiters, order, served, waiter, name);
            }
        }
        List<?> queue = (List<?>) control.say("LRANGE " + QUEUE + " 0 -1");
        Check.equal(waiters.size(), queue.size(), "Redisson's queue");
        if (withNative) {
            queue(waiters, order, served, new Actor(thread ->
                    Kinds.LOCK.rlock(site, "k", Kind.Role.WAITER, "native")), "native");
        }
        long released = System.nanoTime();
        control.say("RLOCK.RELEASE k holder");
        served.forEach(one -> Actor.await(one, BOUND_MS));
        long all = System.nanoTime() - released;
        List<String> redissons = order.stream().filter(name -> !name.equals("native")).toList();
        Check.equal(queue, redissons, "the order of Redisson's queue");
        waiters.forEach(Actor::close);
        return "all " + waiters.size() + " within " + Times.shown(all);
    }

    /** Lets one wait for the lock, note that it is in, and leave. */
    private static void queue(List<Actor> waiters, List<String> order,
            List<Future<String>> served, Actor waiter, String name) {
        waiters.add(waiter);
        Future<Long> entered = waiter.beginLock(LEASE_MS);
        Check.that(!entered.isDone(), "it waits");
        served.add(waiter.begin(contender -> {
            order.add(name);
            contender.unlock();
            return name;
        }));
    }
}
