package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.Json;
import org.scaletrain.Model;
import org.scaletrain.Recipe;
import org.scaletrain.StepReport;
import org.scaletrain.Trainer;

/** The scenarios of tests/scenarios print what they print in C, to the last bit. */
class ScenariosTest {
  private static final Path FILE = Path.of(System.getenv("ST_SOURCES"), "tests/scenarios/scenarios.json");

  /** The numbers that every language draws alike. */
  private static final class Numbers {
    private int state = 1;

    private int draw() {
      state = state * 1664525 + 1013904223;
      return state >>> 8;
    }

    Array array(Map<String, Object> of) {
      long[] dims = list(of, "dims").stream().mapToLong(dim -> (Long) dim).toArray();
      int count = 1;
      for (long dim : dims) count *= (int) dim;
      if (of.get("dtype").equals("i32")) {
        int[] integers = new int[count];
        for (int i = 0; i < count; ++i) integers[i] = draw() % ((Long) of.get("below")).intValue();
        return Array.of(integers, dims);
      }
      float[] floats = new float[count];
      for (int i = 0; i < count; ++i) floats[i] = (float) draw() / (1 << 23) - 1;
      return Array.of(floats, dims);
    }
  }

  @SuppressWarnings("unchecked")
  private static List<Object> list(Map<String, Object> of, String key) {
    return (List<Object>) of.get(key);
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(Object value) {
    return (Map<String, Object>) value;
  }

  private static String bits(double number) {
    return HexFormat.of().toHexDigits(Double.doubleToRawLongBits(number));
  }

  private static void run(Context context, Map<String, Object> scenario, List<String> lines) {
    Numbers numbers = new Numbers();
    try (Model model = Model.builtin(context, (String) scenario.get("model"), map(scenario.get("options")), (Long) scenario.get("seed"));
        Trainer trainer = new Trainer(model, new Recipe(map(scenario.get("recipe"))))) {
      for (long step = 0; step < (Long) scenario.get("steps"); ++step) {
        Map<String, Array> arrays = new LinkedHashMap<>();
        for (Object array : list(scenario, "batch")) arrays.put((String) map(array).get("name"), numbers.array(map(array)));
        StepReport report = trainer.step(Batch.of(arrays));
        lines.add(scenario.get("name") + " " + report.step() + " " + (report.skipped() ? 1 : 0) + " " + bits(report.loss()) + " "
            + bits(report.lr()) + " " + bits(report.gradNorm()));
      }
      lines.add(scenario.get("name") + " " + trainer.digest());
    }
  }

  @Test
  void everyLineIsThatOfC() throws IOException {
    Process inC = new ProcessBuilder(System.getenv("ST_SCENARIOS_IN_C"), FILE.toString()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    List<String> expected = new String(inC.getInputStream().readAllBytes()).lines().toList();
    List<String> here = new ArrayList<>();
    try (Context context = new Context()) {
      for (Object scenario : (List<?>) Json.parse(Files.readString(FILE))) run(context, map(scenario), here);
    }
    assertTrue(here.size() > 50);
    assertEquals(expected, here);
  }
}
