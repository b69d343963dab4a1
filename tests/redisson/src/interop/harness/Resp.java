package interop.harness;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A connection that speaks RESP2. Replies are Long, String, List or null; a string has a
 * char for each byte.
 */
public final class Resp implements AutoCloseable {
    /** An error that the server replied. */
    public static final class Refusal extends RuntimeException {
        Refusal(String text) {
            super(text);
        }

        /** Its first word. */
        public String code() {
            return getMessage().split(" ", 2)[0];
        }
    }

    private static final Charset BYTES = StandardCharsets.ISO_8859_1;
    private static final int CONNECT_MS = 10_000;

    private final Socket socket = new Socket();
    private final InputStream in;

    public Resp(int port) {
        try {
            socket.connect(new InetSocketAddress("127.0.0.1", port), CONNECT_MS);
            socket.setTcpNoDelay(true);
            in = new BufferedInputStream(socket.getInputStream());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Sends a command whose words have no spaces in them. */
    public Object say(String line) {
        return call(line.split(" "));
    }

    /** Sends the words of a command and waits for the reply; names are sent as UTF-8. */
    public synchronized Object call(String... words) {
        try {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            out.write(("*" + words.length + "\r\n").getBytes(BYTES));
            for (String word : words) {
                byte[] bytes = word.getBytes(StandardCharsets.UTF_8);
                out.write(("$" + bytes.length + "\r\n").getBytes(BYTES));
                out.write(bytes);
                out.write("\r\n".getBytes(BYTES));
            }
            socket.getOutputStream().write(out.toByteArray());
            Object reply = read();
            if (reply instanceof Refusal refusal) {
                throw refusal;
            }
            return reply;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Object read() throws IOException {
        String line = readLine();
        String rest = line.substring(1);
        return switch (line.charAt(0)) {
            case '+' -> rest;
            case '-' -> new Refusal(rest);
            case ':' -> Long.parseLong(rest);
            case '$' -> readBulk(Integer.parseInt(rest));
            case '*' -> readArray(Integer.parseInt(rest));
            default -> throw new IOException("no RESP2: " + line);
        };
    }

    private String readBulk(int length) throws IOException {
        if (length < 0) {
            return null;
        }
        byte[] bytes = in.readNBytes(length + 2);
        if (bytes.length < length + 2) {
            throw new EOFException("the server closed the connection");
        }
        return new String(bytes, 0, length, BYTES);
    }

    private List<Object> readArray(int length) throws IOException {
        if (length < 0) {
            return null;
        }
        List<Object> items = new ArrayList<>();
        for (int i = 0; i < length; i++) {
            items.add(read());
        }
        return items;
    }

    private String readLine() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\r'; c = in.read()) {
            if (c < 0) {
                throw new EOFException("the server closed the connection");
            }
            line.append((char) c);
        }
        in.read();
        return line.toString();
    }

    /** A request that waits for its reply meanwhile fails. */
    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException ignored) {
            // It is gone either way.
        }
    }
}
