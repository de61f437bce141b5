package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Calls in any order with odd arguments, including closed objects, succeed or throw one of the package's exceptions. */
class OddCallsTest {
  static final int CALLS = 8_000;

  @ParameterizedTest
  @ValueSource(longs = {1, 2})
  void areRefusedAndNeverACrash(long seed, @TempDir Path folder) throws Exception {
    ProcessBuilder trial = JavaProgram.ofTests(OddCallsTrial.class, List.of("-Xmx512m", "-XX:ErrorFile=/dev/null"), String.valueOf(seed),
        String.valueOf(CALLS), folder.toString());
    String printed = JavaProgram.printed(trial);
    Matcher counts = Pattern.compile("(\\d+) done, (\\d+) refused\n").matcher(printed);
    assertTrue(counts.matches(), printed);
    assertTrue(Integer.parseInt(counts.group(1)) > CALLS / 4 && Integer.parseInt(counts.group(2)) > CALLS / 10, printed);
  }
}
