package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** The Java package covers the whole C ABI. */
class SurfaceTest {
  // C functions without a Java method, since Java has its own options and records instead of structs, and exceptions instead of error codes.
  private static final String ELSEWHERE = "st_\\w+_init|st_last_error|st_last_error_info|st_callback_error";

  private static Path sources() {
    return Path.of(System.getenv().getOrDefault("ST_SOURCES", "."));
  }

  private static List<Class<?>> publicClasses() throws IOException, ClassNotFoundException {
    List<Class<?>> all = new ArrayList<>();
    try (Stream<Path> files = Files.list(sources().resolve("bindings/java/src/org/scaletrain"))) {
      for (Path file : (Iterable<Path>) files::iterator) {
        String name = file.getFileName().toString();
        if (!name.endsWith(".java") || name.equals("package-info.java")) continue;
        Class<?> kind = Class.forName("org.scaletrain." + name.replace(".java", ""));
        if (Modifier.isPublic(kind.getModifiers())) all.add(kind);
      }
    }
    return all;
  }

  private static Set<String> said() throws IOException, ClassNotFoundException {
    Set<String> names = new TreeSet<>();
    for (Class<?> kind : publicClasses()) {
      List<AnnotatedElement> members = new ArrayList<>(Arrays.asList(kind.getDeclaredMethods()));
      members.addAll(Arrays.asList(kind.getDeclaredConstructors()));
      for (AnnotatedElement member : members) {
        OfC of = member.getAnnotation(OfC.class);
        if (of != null) names.addAll(Arrays.asList(of.value()));
      }
    }
    return names;
  }

  @Test
  void everyFunctionOfCIsSomewhere() throws Exception {
    Set<String> symbols = new TreeSet<>();
    String outline = Files.readString(sources().resolve("tests/golden/abi.txt"));
    Pattern.compile("\\b(st_\\w+)\\(").matcher(outline).results().forEach(found -> symbols.add(found.group(1)));
    assertTrue(symbols.size() > 100);
    Set<String> missing = new TreeSet<>(symbols), unknown = said();
    missing.removeAll(said());
    missing.removeIf(name -> name.matches(ELSEWHERE));
    unknown.removeAll(symbols);
    assertEquals(Set.of(), missing);
    assertEquals(Set.of(), unknown);
    var named = Class.forName("org.scaletrain.MethodNames").getDeclaredMethod("in", String.class);  // in errors
    named.setAccessible(true);
    for (String name : said()) assertNotEquals(name, named.invoke(null, name));
  }

  @Test
  void whatIsSaidToBeCalledIsCalled() throws Exception {
    Path library = Path.of(System.getenv().getOrDefault("ST_BUILD_TREE", "build/release"), "java/libscaletrain_java.so");
    Process nm = new ProcessBuilder("nm", "-D", "--undefined-only", library.toString()).redirectErrorStream(true).start();
    String used = new String(nm.getInputStream().readAllBytes());
    assertEquals(0, nm.waitFor(), used);
    Set<String> unused = said();
    unused.removeIf(name -> used.contains(" " + name + "\n"));
    assertEquals(Set.of("st_graph_op"), unused);  // Java uses st_graph_apply, whose attributes have types
  }

  @Test
  void whatIsPublicIsOfThePublicPackage() throws Exception {
    for (Class<?> kind : publicClasses()) {
      assertTrue(Modifier.isFinal(kind.getModifiers()) || Modifier.isAbstract(kind.getModifiers()) || kind.isInterface() || kind.isEnum()
              || Throwable.class.isAssignableFrom(kind), kind + " is there to be made, not to be extended");
      for (var method : kind.getMethods()) {
        Stream.concat(Stream.of(method.getReturnType()), Arrays.stream(method.getParameterTypes()))
            .forEach(type -> assertTrue(!type.getName().startsWith("org.scaletrain.internal"), kind + "." + method.getName()));
      }
    }
  }
}
