package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;
import static org.junit.jupiter.api.Assumptions.*;

import java.io.IOException;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The jar with the library inside: its system requirements, and that it trains without other files, wherever it is unpacked. */
class JarTest {
  private static final Path BUILD = Path.of(System.getenv("ST_BUILD_TREE")), SOURCES = Path.of(System.getenv("ST_SOURCES"));
  private static final Path JAR = BUILD.resolve("jar/scaletrain.jar");
  private static final String JAVA = Path.of(System.getProperty("java.home"), "bin/java").toString();

  private static final String QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";  // for short programs
  private static final Path SAMPLE = SOURCES.resolve("samples/java/01_first_step.java");

  @TempDir static Path classes;
  @TempDir Path folder;

  @BeforeAll
  static void compile() {
    assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, "-cp", JAR.toString(), "-d", classes.toString(), SAMPLE.toString()));
  }

  record Ended(int code, String said) {}

  /** Starts a program in an empty environment and another folder. */
  private Process start(List<String> command) throws IOException {
    ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true);
    builder.environment().clear();
    builder.environment().put("PATH", "/usr/bin:/bin");
    builder.environment().put("LANG", "C.UTF-8");
    builder.environment().put("MAVEN_OPTS", QUICK);
    return builder.start();
  }

  private Ended run(String... command) throws Exception {
    return ended(start(Arrays.asList(command)));
  }

  private static Ended ended(Process process) throws Exception {
    String said = new String(process.getInputStream().readAllBytes());
    assertTrue(process.waitFor(120, TimeUnit.SECONDS), said);
    return new Ended(process.exitValue(), said);
  }

  private Path cache() {
    return folder.resolve("a cache/größe");
  }

  /** A sample, compiled once. */
  private static List<String> sample(Path jar, Path cache) {
    return List.of(JAVA, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.scaletrain.cache=" + cache, "-cp", jar + ":" + classes, "FirstStep");
  }

  /** The command that README.md gives. */
  private List<String> sampleFromItsSource() throws IOException {
    List<String> command = new ArrayList<>(sample(JAR, cache()));
    command.set(command.size() - 1, Files.copy(SAMPLE, folder.resolve("01_first_step.java"), StandardCopyOption.REPLACE_EXISTING).toString());
    command.set(command.size() - 2, JAR.toString());
    return command;
  }

  private Ended sample(Path cache) throws Exception {
    return ended(start(sample(JAR, cache)));
  }

  private List<Path> unpacked() throws IOException {
    try (Stream<Path> all = Files.walk(cache())) {
      return all.filter(Files::isRegularFile).sorted().toList();
    }
  }

  /** The libraries in the jar, by name. That for NVIDIA GPUs is built where there is a toolkit of CUDA. */
  private static List<String> libraries() {
    String plugin = "libscaletrain_cuda.so", wrapper = "libscaletrain_java.so", library = "libscaletrain.so.0.1";
    return Files.exists(BUILD.resolve("portable").resolve(plugin)) ? List.of(library, plugin, wrapper) : List.of(library, wrapper);
  }

  @Test
  void itNeedsGlibc228AndNoCxxRuntime() throws Exception {
    assertEquals(0, run(JAVA.replaceAll("java$", "jar"), "--extract", "--file", JAR.toString()).code());
    for (String name : libraries()) {
      String file = folder.resolve("native/linux-x86_64").resolve(name).toString();
      String needed = run("nm", "-D", "--undefined-only", file).said();
      Matcher version = Pattern.compile("@GLIBC_(\\d+)\\.(\\d+)").matcher(needed);
      int found = 0;
      for (; version.find(); ++found)
        assertTrue(Integer.parseInt(version.group(1)) == 2 && Integer.parseInt(version.group(2)) <= 28, name + " needs " + version.group());
      assertTrue(found > 10, name);
      assertFalse(Pattern.compile("GLIBCXX|CXXABI").matcher(needed).find(), name);
      Set<String> libraries = new TreeSet<>();
      Matcher library = Pattern.compile("NEEDED.*\\[(.*)\\]").matcher(run("readelf", "-d", file).said());
      while (library.find()) libraries.add(library.group(1));
      assertTrue(libraries.contains("libc.so.6"));
      libraries.removeAll(Set.of("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libgcc_s.so.1", "ld-linux-x86-64.so.2",
          "librt.so.1", "libscaletrain.so.0.1"));
      assertEquals(Set.of(), libraries);
      for (String line : run("nm", "-D", "--defined-only", file).said().split("\n")) {
        String symbol = line.replaceAll(".* ", "").replaceAll("@.*", "");
        assertTrue(symbol.startsWith("st_") || symbol.startsWith("Java_org_scaletrain_") || symbol.matches("JNI_On(Un)?[lL]oad")
            || symbol.startsWith("SCALETRAIN"), name + " shows " + symbol);
      }
    }
  }

  @Test
  void itTrainsAloneAndGivesTheSameNumbers() throws Exception {
    Ended ended = ended(start(sampleFromItsSource()));
    assertEquals(0, ended.code(), ended.said());
    assertEquals(run(BUILD.resolve("samples/01_first_step").toString()).said(), ended.said());
    List<String> names = unpacked().stream().map(file -> file.getFileName().toString()).toList();
    assertEquals(libraries(), names);
    assertTrue(unpacked().get(0).getParent().getFileName().toString().matches("java-[0-9a-f]{16}"));
  }

  @Test
  void manyProcessesMayUnpackAtOnce() throws Exception {
    List<Process> processes = new ArrayList<>();
    for (int i = 0; i < 4; ++i) processes.add(start(sample(JAR, cache())));
    for (Process process : processes) {
      Ended ended = ended(process);
      assertEquals(0, ended.code(), ended.said());
    }
    assertEquals(libraries().size(), unpacked().size());
  }

  @Test
  void whatIsDamagedInTheCacheIsWrittenAgain() throws Exception {
    assertEquals(0, sample(cache()).code());
    byte[] good = Files.readAllBytes(unpacked().get(0));
    long touched = Files.getLastModifiedTime(unpacked().get(1)).toMillis();
    byte[] damaged = good.clone();
    damaged[good.length / 2] ^= 1;
    Files.write(unpacked().get(0), damaged);
    assertEquals(0, sample(cache()).code());
    assertTrue(Arrays.equals(good, Files.readAllBytes(unpacked().get(0))));
    Files.write(unpacked().get(0), Arrays.copyOf(good, 1000));
    assertEquals(0, sample(cache()).code());
    Files.delete(unpacked().get(0));
    assertEquals(0, sample(cache()).code());
    assertEquals(touched, Files.getLastModifiedTime(unpacked().get(1)).toMillis());  // the other file was correct and is not rewritten
  }

  @Test
  void aFolderThatCannotBeWrittenIsNamedWithTheWayOut() throws Exception {
    Path file = Files.writeString(folder.resolve("file"), "no folder");
    Ended ended = sample(file.resolve("cache"));
    assertEquals(1, ended.code(), ended.said());
    assertTrue(ended.said().contains("org.scaletrain.Unavailable"), ended.said());
    assertTrue(ended.said().contains(file.toString()), ended.said());
    assertTrue(ended.said().contains("property org.scaletrain.cache"), ended.said());
  }

  @Test
  void whatIsMissingIsNamed() throws Exception {
    Path jar = folder.resolve("without.jar");
    Files.copy(BUILD.resolve("java/scaletrain.jar"), jar);
    Ended nothing = ended(start(sample(jar, cache())));
    assertEquals(1, nothing.code());
    assertTrue(nothing.said().contains("libscaletrain_java.so is neither in the jar"), nothing.said());
    assertTrue(nothing.said().contains("org.scaletrain.library.path"), nothing.said());

    List<String> command = new ArrayList<>(sample(jar, cache()));
    command.add(1, "-Dorg.scaletrain.library.path=" + folder);
    Ended wrongFolder = ended(start(command));
    assertTrue(wrongFolder.said().contains(folder.resolve("libscaletrain_java.so") + " does not exist"), wrongFolder.said());

    Files.writeString(folder.resolve("libscaletrain_java.so"), "no library");
    Ended noLibrary = ended(start(command));
    assertEquals(1, noLibrary.code());
    assertTrue(noLibrary.said().contains("org.scaletrain.Unavailable") && noLibrary.said().contains("cannot be loaded"), noLibrary.said());

    // The wrapper without libscaletrain.so.
    Files.delete(folder.resolve("libscaletrain_java.so"));
    Files.copy(BUILD.resolve("jar/resources/native/linux-x86_64/libscaletrain_java.so"), folder.resolve("libscaletrain_java.so"));
    Ended alone = ended(start(command));
    assertEquals(1, alone.code());
    assertTrue(alone.said().contains("libscaletrain.so.0.1"), alone.said());
  }

  @Test
  void itIsAModule() throws Exception {
    Path home = Files.createDirectories(folder.resolve("app/app"));
    Files.writeString(folder.resolve("app/module-info.java"), "module app { requires org.scaletrain; }");
    Files.writeString(home.resolve("Main.java"), """
        package app;
        public class Main {
          public static void main(String[] arguments) {
            System.out.println(org.scaletrain.Library.version());
          }
        }
        """);
    Ended compiled = run(JAVA.replaceAll("java$", "javac"), "-p", JAR.toString(), "-d", folder.resolve("out").toString(),
        folder.resolve("app/module-info.java").toString(), home.resolve("Main.java").toString());
    assertEquals(0, compiled.code(), compiled.said());
    Ended ended = run(JAVA, "-Dorg.scaletrain.cache=" + cache(), "-p", JAR + ":" + folder.resolve("out"), "-m", "app/app.Main");
    assertEquals("0.1.0\n", ended.said());
  }

  @Test
  void mavenMakesItFromDebiansRepository() throws Exception {
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/mvn")), "Maven is not there");
    Path build = Files.createDirectories(folder.resolve("build/jar"));
    for (String part : List.of("sources", "resources"))
      assertEquals(0, run("cp", "-r", BUILD.resolve("jar").resolve(part).toString(), build.toString()).code());
    Ended made = run("/usr/bin/mvn", "-q", "-B", "-Duser.home=" + folder, "-s",
        SOURCES.resolve("bindings/java/debian-settings.xml").toString(), "-f", SOURCES.resolve("bindings/java/pom.xml").toString(),
        "-Dmaven.repo.local=" + folder.resolve("repository"), "-Dscaletrain.build=" + folder.resolve("build"), "install");
    assertEquals(0, made.code(), made.said());
    Path jar = folder.resolve("repository/org/scaletrain/scaletrain/0.1.0/scaletrain-0.1.0.jar");
    Ended ended = ended(start(sample(jar, cache())));
    assertEquals(0, ended.code(), ended.said());
    assertTrue(ended.said().endsWith("it learned the sine\n"), ended.said());
  }

  @Test
  void newerMachinesTakeIt() throws Exception {
    List<Path> others = new ArrayList<>();
    try (Stream<Path> all = Files.list(Path.of("/usr/lib/jvm"))) {
      for (Path one : (Iterable<Path>) all::iterator)
        if (!Files.isSymbolicLink(one) && Files.isExecutable(one.resolve("bin/javac"))
            && !one.toRealPath().equals(Path.of(System.getProperty("java.home"))))
          others.add(one.resolve("bin/java"));
    }
    assumeTrue(!others.isEmpty(), "there is one JDK here");
    for (Path other : others) {
      List<String> command = sampleFromItsSource();
      command.set(0, other.toString());
      command.add(1, "--enable-native-access=ALL-UNNAMED");
      Ended ended = ended(start(command));
      assertEquals(0, ended.code(), ended.said());
      assertTrue(ended.said().endsWith("it learned the sine\n"), ended.said());
    }
  }

  @Test
  void everythingPublicIsDocumented() throws Exception {
    Pattern member = Pattern.compile("^(?:  )?(?:public|  default) .*[({]$|^  [A-Z_0-9]+(?:\\(.*\\))?[,;]?$");
    try (Stream<Path> files = Files.list(SOURCES.resolve("bindings/java/src/org/scaletrain"))) {
      for (Path file : (Iterable<Path>) files.filter(each -> each.toString().endsWith(".java"))::iterator) {
        List<String> lines = Files.readAllLines(file);
        if (lines.stream().noneMatch(line -> line.matches("public .*"))) continue;
        for (int i = 0; i < lines.size(); ++i) {
          if (!member.matcher(lines.get(i)).find()) continue;
          int above = i - 1;
          while (lines.get(above).strip().startsWith("@") || lines.get(above).endsWith(",")) --above;
          assertTrue(lines.get(above).endsWith("*/") || lines.subList(above, i).contains("  @Override"),
              file + ":" + (i + 1) + ": " + lines.get(i));
        }
      }
    }
  }
}
