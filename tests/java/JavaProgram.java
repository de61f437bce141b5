package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.tools.ToolProvider;
import org.scaletrain.*;

/** A program in its own JVM, with the package on its class path. */
final class JavaProgram {
  private static final int MOST_SECONDS = 600;

  private JavaProgram() {}

  /** As in a shell: {@code java -cp scaletrain.jar WORDS}. */
  static ProcessBuilder of(String... words) {
    List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin/java").toString(), "-Xcheck:jni",
        "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.language=en", "-cp", jar().toString()));
    if (Runtime.version().feature() >= 22) command.add(1, "--enable-native-access=ALL-UNNAMED");  // otherwise Java prints a warning
    command.addAll(List.of(words));
    return new ProcessBuilder(command).redirectErrorStream(true);
  }

  /** A main class of the tests, with JVM options. */
  static ProcessBuilder ofTests(Class<?> main, List<String> options, String... words) {
    List<String> all = new ArrayList<>(List.of("-cp", jar() + ":" + origin(main)));
    all.addAll(options);
    all.add(main.getName());
    all.addAll(List.of(words));
    return of(all.toArray(new String[0]));
  }

  /** Compiles a single-file program once, since starting it from source takes a second. {@code name} is its main class. */
  static ProcessBuilder compiled(Path source, Path classes, String name, String... words) {
    if (!Files.exists(classes.resolve(name + ".class"))) {
      int code = ToolProvider.getSystemJavaCompiler().run(null, null, null, "-cp", jar().toString(), "-d", classes.toString(), source.toString());
      assertEquals(0, code, source.toString());
    }
    List<String> all = new ArrayList<>(List.of("-cp", jar() + ":" + classes, name));
    all.addAll(List.of(words));
    return of(all.toArray(new String[0]));
  }

  /** Packs the folder of a main class of the tests: Java archives the classes of jars alone. */
  static String jarOf(Class<?> main, Path jar) {
    int code = java.util.spi.ToolProvider.findFirst("jar").orElseThrow().run(System.out, System.err, "--create", "--no-compress", "--file", jar.toString(),
        "-C", origin(main).toString(), ".");
    assertEquals(0, code, jar.toString());
    return jar.toString();
  }

  /** The jar of the package under test. */
  static Path jar() {
    return origin(Context.class);
  }

  private static Path origin(Class<?> of) {
    try {
      return Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException never) {
      throw new IllegalStateException(never);
    }
  }

  /** Runs the program and returns its output. Throws if its exit status is not 0 or if it does not end. */
  static String printed(ProcessBuilder program) throws IOException, InterruptedException {
    Process process = program.start();
    CompletableFuture.delayedExecutor(MOST_SECONDS, TimeUnit.SECONDS).execute(process::destroyForcibly);
    String said = new String(process.getInputStream().readAllBytes());
    if (process.waitFor() != 0) throw new AssertionError(program.command() + " ended badly:\n" + said);
    return said;
  }
}
