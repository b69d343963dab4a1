package dev.rlock;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

/** Between a client and a server: closes connections, keeps back what the server says, and tells what the client says. */
final class Proxy implements AutoCloseable {
    final int port;
    private final ServerSocket listener;
    private final int to;
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private volatile boolean refusing;
    /** When the client says this word its connection is closed, before or after the server gets it. */
    private volatile String cutAt;
    private volatile boolean serverHears;
    /** Clients that get no more replies. */
    private final List<Socket> deaf = new CopyOnWriteArrayList<>();
    /** All that clients have said. */
    private final StringBuffer asked = new StringBuffer();
    /** The same, as it was read: what was written at once, or more. */
    private final List<String> pieces = new CopyOnWriteArrayList<>();
    /** A command that the server does not know, and the one in its place. */
    private volatile String[] unknown = {"", ""};
    private boolean holding;
    /** When the client says this word the server gets it, and nothing goes to the clients from then on. */
    private String holdAt;

    Proxy(int to) {
        this.to = to;
        try {
            listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        port = listener.getLocalPort();
        daemon(this::accept);
    }

    private static void daemon(Runnable run) {
        var thread = new Thread(run, "proxy");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                connect(listener.accept());
            }
        } catch (IOException error) {
            // It was closed.
        }
    }

    /** In one step: it is closed by the next cut, or begins after it. */
    private void connect(Socket client) throws IOException {
        synchronized (sockets) {
            if (refusing) {
                client.close();
                return;
            }
            var server = new Socket("127.0.0.1", to);
            sockets.addAll(List.of(client, server));
            daemon(() -> requests(client, server));
            daemon(() -> replies(server, client));
        }
    }

    private void requests(Socket from, Socket to) {
        pump(from, to, (said, out, read, size) -> {
            String text = said.replace(unknown[0], unknown[1]);
            byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
            int many = bytes.length;
            asked.append(text);
            pieces.add(text);
            synchronized (this) {
                if (holdAt != null && text.contains(holdAt)) {
                    holding = true;
                    holdAt = null;
                }
            }
            String word = cutAt;
            if (word != null && text.contains(word)) {
                cutAt = null;
                if (serverHears) {
                    deaf.add(from);
                    out.write(bytes, 0, many);
                    to.shutdownOutput(); // it closes when it has done all of it, and then the client's is closed
                } else {
                    cut();
                }
                return;
            }
            out.write(bytes, 0, many);
        });
    }

    private void replies(Socket from, Socket to) {
        pump(from, to, (text, out, bytes, many) -> {
            synchronized (this) {
                while (holding) {
                    wait();
                }
            }
            if (!deaf.contains(to)) {
                out.write(bytes, 0, many);
            }
        });
    }

    private interface Pass {
        void pass(String text, OutputStream out, byte[] bytes, int many) throws IOException, InterruptedException;
    }

    private void pump(Socket from, Socket to, Pass pass) {
        var bytes = new byte[1 << 16];
        try (from; to) {
            InputStream in = from.getInputStream();
            for (int many; (many = in.read(bytes)) > 0; ) {
                pass.pass(new String(bytes, 0, many, StandardCharsets.ISO_8859_1), to.getOutputStream(), bytes, many);
            }
        } catch (IOException | InterruptedException error) {
            // The other side of it was closed.
        }
    }

    void cutAt(String word, boolean serverHears) {
        this.serverHears = serverHears;
        cutAt = word;
    }

    /** As if the server did not know it. */
    void unknown(String word, String other) {
        unknown = new String[] {word, other};
    }

    /** All that clients have said, a word a line. */
    String asked() {
        return asked.toString().lines()
                .filter(word -> !word.startsWith("*") && !word.startsWith("$"))
                .collect(Collectors.joining("\n", "\n", "\n"));
    }

    /** How often that was among it. */
    int said(String what) {
        return asked().split(what, -1).length - 1;
    }

    /** How often this was among it, and that behind it in the same piece. */
    long saidAtOnce(String first, String second) {
        return pieces.stream().filter(piece -> piece.contains(first) && piece.indexOf(second, piece.indexOf(first)) > 0).count();
    }

    boolean hasCut() {
        return cutAt == null;
    }

    void cut() {
        synchronized (sockets) {
            for (Socket socket : sockets) {
                try {
                    socket.close();
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }
            sockets.clear();
        }
    }

    void refuse(boolean refusing) {
        synchronized (sockets) {
            this.refusing = refusing;
        }
    }

    synchronized void holdAt(String word) {
        holdAt = word;
    }

    synchronized boolean isHolding() {
        return holding;
    }

    void awaitHolding() {
        Server.await("the word at which it holds", () -> {
            synchronized (this) {
                return holdAt == null;
            }
        });
    }

    /** Nothing goes to the clients while it holds. */
    synchronized void hold(boolean holding) {
        this.holding = holding;
        holdAt = null;
        notifyAll();
    }

    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        cut();
    }
}
