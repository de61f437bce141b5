// Plans before anything runs: a GPT of 10 B parameters on 8 ranks of a machine that is not here. The first recipe does not fit; the plan
// lists changes of the recipe with their prices. The first one that fits is applied and planned. Then the library searches by itself.
// Prints what 15_plan.c prints.
// Run: java -cp scaletrain.jar 15_plan.java

import java.util.List;
import java.util.Map;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.Json;
import org.scaletrain.Model;
import org.scaletrain.Plan;
import org.scaletrain.Recipe;

class PlannedRun {
  static final Map<String, ?> MACHINE = Map.of("machine", "a100-80g"), SEARCHED = Map.of("machine", "a100-80g", "auto", true);

  static Map<?, ?> map(Map<?, ?> in, String key) {
    return (Map<?, ?>) in.get(key);
  }

  static double number(Map<?, ?> in, String key) {
    return ((Number) in.get(key)).doubleValue();
  }

  /** Returns the plan's values. */
  static Map<?, ?> printPlan(String name, Plan plan) {
    var all = (Map<?, ?>) Json.parse(plan.json());
    double total = number(map(all, "memory"), "device_total") / 1e9, room = number(all, "device_memory") / 1e9;
    System.out.printf("%-14s %6.1f GB of %.1f, %.2f s a step: ", name, total, room, plan.stepSeconds());
    if (plan.fits()) System.out.printf("fits%n");
    else System.out.printf("does not fit, %.1f GB too much%n", total - room);
    return all;
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    Map<String, ?> sizes = Map.of("layers", 12, "width", 8192, "heads", 64, "context", 1024, "vocabulary", 50304);
    boolean allFit = false;
    // A plan does not read the parameters, so they are never made.
    try (Context context = new Context(new ContextOptions().device(device).lateParameters());
        Model model = Model.builtin(context, "gpt", sizes, 1);
        Recipe recipe = new Recipe().ranks(8).batch(16).precision("fp16").optimizer("adam"); Plan first = new Plan(model, recipe, MACHINE)) {
      Map<?, ?> book = map((Map<?, ?>) Json.parse(first.json()), "textbook");
      System.out.printf("%.1f B parameters; textbook: %.0f bytes each, %.1f GB a rank, %.1f GB with ZeRO-3%n",
          number(book, "parameters") / 1e9, number(book, "bytes_per_parameter"), number(book, "data_parallel") / 1e9,
          number(book, "zero_3") / 1e9);
      Map<?, ?> all = printPlan("first recipe", first);

      Map<?, ?> fix = ((List<?>) all.get("fixes")).stream().map(one -> (Map<?, ?>) one).filter(one -> (Boolean) one.get("fits")).findFirst()
          .orElseThrow();
      System.out.println(fix.get("text"));
      Recipe fixed = first.recipe();
      map(fix, "recipe").forEach((key, value) -> fixed.set((String) key, value));
      try (Plan second = new Plan(model, fixed, MACHINE); Plan best = new Plan(model, recipe, SEARCHED)) {
        printPlan("with the fix", second);
        List<?> found = (List<?>) printPlan("searched", best).get("found");
        System.out.println(Json.text(((Map<?, ?>) found.get(0)).get("recipe")));
        allFit = !first.fits() && second.fits() && best.fits();
      }
    }
    System.exit(allFit ? 0 : 1);
  }
}
