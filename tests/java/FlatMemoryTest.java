package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Thousands of steps, objects and errors: what is left is nothing. {@code ST_LONG_TRIALS=1} runs the sizes of the issue in full. Each trial
 * has a Java of its own, whose heap is there from the start, so that what grows is ours.
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
