package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.scaletrain.*;

/** The scenarios of tests/scenarios print the same output as in C, bit for bit. */
class ScenariosTest {
  @TempDir Path folder;

  private static final Path FILE = Path.of(System.getenv("ST_SOURCES"), "tests/scenarios/scenarios.txt");

  /** Generates the same numbers as the runners in other languages. */
  private static final class Numbers {
    private int state = 1;

    private int draw() {
      state = state * 1664525 + 1013904223;
      return state >>> 8;
    }

    /** Parses a line: name, dtype, dims. */
    Array array(String[] of) {
      Array array = Array.allocate(of[1].equals("i32") ? DType.I32 : DType.F32, Arrays.stream(of).skip(2).mapToLong(Long::parseLong).toArray());
      for (int i = 0; i < array.size(); ++i) {
        if (array.dtype() == DType.I32) array.ints().put(i, draw() % 50);
        else array.floats().put(i, (float) draw() / (1 << 23) - 1);
      }
      return array;
    }
  }

  private static String bits(double number) {
    return HexFormat.of().toHexDigits(Double.doubleToRawLongBits(number));
  }

  private static String line(String name, StepReport report) {
    return name + " " + report.step() + " " + (report.skipped() ? 1 : 0) + " " + bits(report.loss()) + " " + bits(report.lr()) + " "
        + bits(report.gradNorm());
  }

  private static Batch drawn(Numbers numbers, String[] scenario) {
    Map<String, Array> arrays = new LinkedHashMap<>();
    for (int i = 4; i < scenario.length; ++i) arrays.put(scenario[i].split(" ")[0], numbers.array(scenario[i].split(" ")));
    return Batch.of(arrays);
  }

  private void steer(Context context, String name, Trainer trainer, Data data, long steps, List<String> lines) {
    AtomicBoolean resumed = new AtomicBoolean();
    try (Checkpoint checkpoint = new Checkpoint(context, folder)) {
      trainer.run(steps, report -> {
        lines.add(line(name, report));
        if (report.step() == 2) lines.add(line(name, trainer.step()));
        if (report.step() == 4) lines.add(name + " evaluation " + bits(trainer.evaluate(data).loss()));
        if (report.step() == 5) trainer.save(checkpoint);
        if (report.step() == 7 && !resumed.getAndSet(true)) trainer.resume(checkpoint);
        if (report.step() == 8) {
          assertThrows(Busy.class, () -> trainer.run(9));
          lines.add(name + " busy");
        }
      });
    }
  }

  @SuppressWarnings("unchecked")
  private void run(Context context, String[] scenario, List<String> lines) {
    String[] kind = scenario[1].split(" ");
    Numbers numbers = new Numbers();
    boolean isRun = kind.length > 3;
    long steps = Long.parseLong(kind[2]);
    try (Data data = isRun ? Data.arrays(context, drawn(numbers, scenario)) : null; Model model = Model.builtin(context, kind[0], (Map<String, Object>) Json.parse(scenario[2]), Long.parseLong(kind[1]));
        Trainer trainer = new Trainer(model, new Recipe(scenario[3]), data)) {
      if (isRun) steer(context, scenario[0], trainer, data, steps, lines);
      for (int step = 0; !isRun && step < steps; ++step) lines.add(line(scenario[0], trainer.step(drawn(numbers, scenario))));
      lines.add(scenario[0] + " " + trainer.digest());
    }
  }

  @Test
  void everyLineIsThatOfC() throws IOException {
    Process inC = new ProcessBuilder(System.getenv("ST_SCENARIOS_IN_C"), FILE.toString()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    List<String> expected = new String(inC.getInputStream().readAllBytes()).lines().toList();
    List<String> here = new ArrayList<>();
    try (Context context = new Context()) {
      for (String scenario : Files.readString(FILE).split("\n\n")) run(context, scenario.split("\n"), here);
    }
    assertTrue(here.size() > 50);
    assertEquals(expected, here);
  }
}
