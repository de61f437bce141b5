package org.scaletrain.tests;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.scaletrain.Context;

/** A program in a Java of its own, with the package on its class path. */
final class JavaProgram {
  private JavaProgram() {}

  /** As in a shell: {@code java -cp scaletrain.jar WORDS}. */
  static ProcessBuilder of(String... words) {
    List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin/java").toString(), "-Xcheck:jni",
        "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.language=en", "-cp", jar().toString()));
    command.addAll(List.of(words));
    return new ProcessBuilder(command).redirectErrorStream(true);
  }

  /** Where the package under test comes from. */
  static Path jar() {
    try {
      return Path.of(Context.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException never) {
      throw new IllegalStateException(never);
    }
  }

  /** Runs to its end; what it printed. Throws when it ends otherwise than with 0, or does not. */
  static String printed(ProcessBuilder program) throws IOException, InterruptedException {
    Process process = program.start();
    String said = new String(process.getInputStream().readAllBytes());
    if (!process.waitFor(120, TimeUnit.SECONDS) || process.exitValue() != 0)
      throw new AssertionError(program.command() + " ended badly:\n" + said);
    return said;
  }
}
