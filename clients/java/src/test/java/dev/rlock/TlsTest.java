package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import java.io.File;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Over TLS, with a certificate that the program trusts, and with others. */
@Timeout(240)
class TlsTest {
    @TempDir
    Path folder;

    private File file(String name) {
        return folder.resolve(name).toFile();
    }

    /** Signed by itself, for this host. */
    private void certificate(String name, String host) throws Exception {
        int end = new ProcessBuilder(
                        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                        "-addext", "subjectAltName=" + host, "-keyout", name + ".key", "-out", name + ".crt")
                .directory(folder.toFile()).redirectErrorStream(true).redirectOutput(file("log")).start().waitFor();
        assertEquals(0, end);
    }

    private Server server(String certificate) {
        return new Server(
                "--tls-port", "${port}", "--tls-auth-clients", "no",
                "--tls-cert-file", file(certificate + ".crt").toString(),
                "--tls-key-file", file(certificate + ".key").toString(),
                "--tls-ca-cert-file", file(certificate + ".crt").toString());
    }

    private interface With {
        void run(Locks locks) throws Exception;
    }

    private void over(Server server, String trusted, With with) throws Exception {
        var client = RedisClient.create(RedisURI.builder().withHost("localhost").withPort(server.tlsPort).withSsl(true).build());
        client.setOptions(ClientOptions.builder()
                .sslOptions(SslOptions.builder().jdkSslProvider().trustManager(file(trusted + ".crt")).build())
                .build());
        try (var locks = Locks.over(client, Duration.ofSeconds(5))) {
            with.run(locks);
        }
        client.shutdown(0, 0, TimeUnit.SECONDS);
    }

    private static void fails(Locks locks, String why) {
        var error = assertThrows(ConnectionException.class, () -> locks.acquire("a", Duration.ZERO));
        assertTrue(error.getMessage().contains(why), error.getMessage());
    }

    @Test
    void aCertificateThatIsTrustedAndOthers() throws Exception {
        certificate("right", "DNS:localhost");
        certificate("other", "DNS:localhost");
        certificate("elsewhere", "DNS:elsewhere.example");
        try (var server = server("right")) {
            over(server, "right", locks -> {
                try (Hold hold = locks.acquire("a", Duration.ofSeconds(10))) {
                    hold.renew(Duration.ofSeconds(30));
                    assertEquals(1, server.holders("a"));
                }
            });
            over(server, "other", locks -> fails(locks, "unable to find valid certification path"));
        }
        try (var server = server("elsewhere")) {
            over(server, "elsewhere", locks -> fails(locks, "No subject alternative DNS name matching localhost"));
        }
    }
}
