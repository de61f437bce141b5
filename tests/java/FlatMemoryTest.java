package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Thousands of steps, objects and errors leave nothing behind. {@code ST_LONG_TRIALS=1} runs the full sizes. Each trial runs in its own JVM, which
 * allocates its heap at the start, so that only memory of the library can grow.
 */
class FlatMemoryTest {
  static final int MOST_KIB = 2048;

  @ParameterizedTest
  @CsvSource({"steps,10000", "closed,100000", "dropped,100000", "errors,10000"})
  void leaveMemoryFlatAndNoHandle(String what, int all) throws Exception {
    int count = System.getenv("ST_LONG_TRIALS") == null ? all / 20 : all;
    int rounds = what.equals("steps") || what.equals("errors") ? count : count / FlatMemoryTrial.OBJECTS;
    String printed = JavaProgram.printed(JavaProgram.ofTests(FlatMemoryTrial.class,
        List.of("-Xms48m", "-Xmx48m", "-XX:+AlwaysPreTouch"), what, String.valueOf(rounds)));
    System.out.println(count + " " + what + ": " + printed.strip());
    Matcher outcome = Pattern.compile("(-?\\d+) KiB, (\\d+) handles\n").matcher(printed);
    assertTrue(outcome.matches(), printed);
    assertEquals(0, Long.parseLong(outcome.group(2)), "handles");
    assertTrue(Long.parseLong(outcome.group(1)) < MOST_KIB, printed);
  }
}
