package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.scaletrain.*;

/** The native library that is found has another version than the package was built for. */
class OtherVersionTest {
  @TempDir
  Path folder;

  /** Makes the first call of the package. */
  static final class FirstCall {
    public static void main(String[] none) {
      try {
        System.out.println(Library.version());
      } catch (RuntimeException refusal) {
        System.out.println(refusal.getClass().getSimpleName() + ": " + refusal.getMessage());
      }
    }
  }

  @Test
  void isRefusedWhenItIsLoaded() throws Exception {
    Path source = folder.resolve("other.c"), other = folder.resolve("other.so");
    Files.writeString(source, "int st_require(int major, int minor) { return major + minor < 0 ? 0 : 7; }\n"
        + "const char* st_last_error(void) { return \"this is version 7.3\"; }\n");
    assertEquals(0, new ProcessBuilder("cc", "-shared", "-fPIC", "-o", other.toString(), source.toString()).inheritIO().start().waitFor());
    ProcessBuilder program = JavaProgram.ofTests(FirstCall.class, List.of());
    assertEquals(Library.version() + "\n", JavaProgram.printed(program));
    program.environment().put("LD_PRELOAD", other.toString());
    String said = JavaProgram.printed(program);
    assertTrue(said.startsWith("Unavailable: ") && said.contains("another version") && said.contains("this is version 7.3"), said);
  }
}
