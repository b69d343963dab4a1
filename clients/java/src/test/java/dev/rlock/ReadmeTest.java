package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
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

    /** What it says about forms is in these: they are to compile and to run. */
    @Test
    void itsFormsRun() throws Exception {
        String readme = Files.readString(Path.of("README.md"));
        String forms = Files.readString(Path.of("examples/Forms.java"));
        int quoted = 0;
        for (var code : Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(readme).results()
                .map(found -> found.group(1)).filter(part -> !part.startsWith("import")).toList()) {
            assertTrue(forms.contains(code.strip().indent(12).stripTrailing()), code);
            quoted++;
        }
        assertEquals(9, quoted);
        Class.forName("Forms")
                .getMethod("run", Locks.class)
                .invoke(null, locks);
    }
}
