package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the README's Java example unchanged. */
class ReadmeTest {
  @Test
  void theExampleLearns(@TempDir Path folder) throws Exception {
    String readme = Files.readString(Path.of(System.getenv("ST_SOURCES"), "README.md"));
    Matcher example = Pattern.compile("\n```java\n(.*?)\n```", Pattern.DOTALL).matcher(readme);
    assertTrue(example.find());
    List<String> lines = example.group(1).lines().toList();
    String imports = lines.stream().filter(line -> line.startsWith("import ")).collect(Collectors.joining("\n"));
    String program = lines.stream().filter(line -> !line.startsWith("import ")).collect(Collectors.joining("\n"));
    Path file = folder.resolve("Example.java");
    Files.writeString(file, imports + "\nclass Example {\n  public static void main(String[] arguments) {\n" + program + "\n  }\n}\n");
    String printed = JavaProgram.printed(JavaProgram.of(file.toString()));
    assertTrue(Double.parseDouble(printed.strip().replace("loss ", "")) < 0.01, printed);
  }
}
