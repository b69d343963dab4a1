package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

class ReadmeTest extends WithServer {
    @Test
    void itsFirstProgramRuns() throws Exception {
        String program = Files.readString(Path.of("examples/FirstProgram.java"));
        assertTrue(Files.readString(Path.of("README.md")).contains("```java\n" + program + "```\n"));
        var seen = new ByteArrayOutputStream();
        PrintStream before = System.out;
        System.setOut(new PrintStream(seen, true));
        try {
            // It has no package, so that it can be copied as it is.
            Class.forName("FirstProgram")
                    .getMethod("main", String[].class)
                    .invoke(null, (Object) new String[] {"redis://127.0.0.1:" + server.port});
        } finally {
            System.setOut(before);
        }
        assertTrue(seen.toString().matches("alone, with token \\d+\\R"), seen.toString());
        assertTrue(server.isFree("jobs"));
    }

    /** What it says about forms is in Forms, which runs; and each compiles by itself, as it says. */
    @Test
    void itsFormsRun() throws Exception {
        String readme = Files.readString(Path.of("README.md"));
        String example = Files.readString(Path.of("examples/Forms.java"));
        var blocks = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(readme).results()
                .map(found -> found.group(1)).toList();
        String imports = blocks.get(1);
        assertTrue(example.startsWith(imports));
        var forms = blocks.subList(2, blocks.size());
        assertEquals(12, forms.size());
        for (int n = 0; n < forms.size(); n++) {
            assertTrue(example.contains(forms.get(n).strip().indent(12).stripTrailing()), forms.get(n));
            compile("Form" + n, imports + "class Form" + n + " { static void step() {} static void save(long token) {}\n"
                    + "static void form(Locks locks) throws Exception {\n" + forms.get(n) + "} }\n");
        }
        Class.forName("Forms")
                .getMethod("run", Locks.class)
                .invoke(null, locks);
    }

    private static void compile(String name, String text) throws Exception {
        Path folder = Files.createTempDirectory("rlock-java-");
        Path source = Files.writeString(folder.resolve(name + ".java"), text);
        var said = new ByteArrayOutputStream();
        int status = ToolProvider.getSystemJavaCompiler().run(
                null, said, said, "-cp", System.getProperty("java.class.path"), "-d", folder.toString(), source.toString());
        assertEquals(0, status, said + text);
        try (var files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }
}
