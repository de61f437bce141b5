package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.*;

/** Checks memory with valgrind: the library leaks nothing, reads no uninitialised memory and uses no freed memory. */
class LeaksTest {
  /** An error that valgrind reports in the library or its wrapper. */
  record Complaint(String kind, int blocks, List<String> functions) {}

  @TempDir
  Path folder;

  private List<Complaint> complaints() throws Exception {
    Path found = folder.resolve("valgrind.xml");
    List<String> command = new ArrayList<>(List.of("/usr/bin/valgrind", "--smc-check=all-non-file", "--leak-check=full",
        "--show-leak-kinds=definite", "--num-callers=40", "--xml=yes", "--xml-file=" + found));
    String classes = JavaProgram.jarOf(LeakTrial.class, folder.resolve("tests.jar")), archive = folder.resolve("classes.jsa").toString();
    // A run without valgrind archives the classes that it loaded and what its lambdas became: under valgrind, making them takes seconds.
    JavaProgram.printed(trial(classes, "-XX:ArchiveClassesAtExit=" + archive, "-Xlog:disable"));
    ProcessBuilder trial = trial(classes, "-XX:SharedArchiveFile=" + archive);
    command.addAll(trial.command());
    trial.environment().remove("SCALETRAIN_ISA");  // valgrind's processor has no AVX-512
    assertEquals("handles left: 0\n", JavaProgram.printed(trial.command(command)));
    return read(DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(found.toFile()));
  }

  /** -Xint, so that valgrind need not track compiled code; a small heap, so that Java overwrites stale pointers in it. */
  private static ProcessBuilder trial(String classes, String... options) {
    List<String> words = new ArrayList<>(List.of("-cp", JavaProgram.jar() + ":" + classes, "-Xint", "-Xmx16m"));
    words.addAll(List.of(options));
    words.add(LeakTrial.class.getName());
    return JavaProgram.of(words.toArray(new String[0]));
  }

  private static List<Complaint> read(Document document) {
    List<Complaint> all = new ArrayList<>();
    for (Element error : elements(document.getDocumentElement(), "error")) {
      List<String> functions = new ArrayList<>();
      boolean ours = false;
      for (Element frame : elements(elements(error, "stack").get(0), "frame")) {
        String file = text(frame, "obj");
        functions.add(text(frame, "fn"));
        if (file.equals("?") || file.contains("libjvm")) break;  // allocations of the JVM do not count
        ours |= file.contains("libscaletrain");
      }
      String blocks = text(error, "leakedblocks");
      if (ours) all.add(new Complaint(text(error, "kind"), blocks.equals("?") ? 0 : Integer.parseInt(blocks), functions));
    }
    return all;
  }

  private static List<Element> elements(Element in, String name) {
    NodeList found = in.getElementsByTagName(name);
    List<Element> all = new ArrayList<>();
    for (int i = 0; i < found.getLength(); ++i) all.add((Element) found.item(i));
    return all;
  }

  private static String text(Element of, String name) {
    Node found = of.getElementsByTagName(name).item(0);
    return found == null ? "?" : found.getTextContent();
  }

  /** The deliberate defects come last and use their own calls. They prove that valgrind detects such errors. */
  @Test
  void nothingIsLostOrUsedTooLateButWhatIsMeantTo() throws Exception {
    Assumptions.assumeTrue(Files.isExecutable(Path.of("/usr/bin/valgrind")), "valgrind is not here; tests/setup installs it");
    Map<String, Integer> lost = new TreeMap<>();
    for (Complaint complaint : complaints()) {
      String meant = complaint.kind().equals("Leak_DefinitelyLost") ? "st_tensor_to_dlpack" : "st_model_set";
      assertTrue(complaint.functions().contains(meant), complaint.toString());
      lost.merge(complaint.kind(), complaint.blocks(), Integer::sum);
    }
    assertEquals(Set.of("InvalidRead", "Leak_DefinitelyLost"), lost.keySet());
    int blocks = lost.get("Leak_DefinitelyLost");
    assertTrue(0 < blocks && blocks <= 3, blocks + " blocks: three are lost, of which a stale word may hide some");
  }
}
