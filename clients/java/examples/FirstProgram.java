import dev.rlock.Hold;
import dev.rlock.Locks;
import io.lettuce.core.RedisClient;
import java.time.Duration;

public class FirstProgram {
    public static void main(String[] args) throws Exception {
        RedisClient client = RedisClient.create(args.length > 0 ? args[0] : "redis://localhost");
        try (Locks locks = Locks.over(client)) {
            try (Hold hold = locks.acquire("jobs", Duration.ofSeconds(10))) {
                System.out.println("alone, with token " + hold.token());
            }
        } finally {
            client.shutdown();
        }
    }
}
