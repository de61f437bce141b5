package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** A plan of a run on a machine that is not here, from Java. */
class PlanTest {
  private static Model gpt() {
    try (Context context = new Context(new ContextOptions().lateParameters())) {
      return Model.builtin(context, "gpt", Map.of("layers", 2, "width", 64, "heads", 4, "context", 32, "vocabulary", 300), 1);
    }
  }

  @Test
  void aPlanOutlivesModelRecipeAndContext() {
    Plan plan;
    try (Model model = gpt(); Recipe recipe = new Recipe().ranks(4).batch(4).zero(1)) {
      plan = new Plan(model, recipe, Map.of("machine", "v100-32g", "rank", 3, "simulate", true));
    }
    var all = (Map<?, ?>) Json.parse(plan.json());
    assertEquals(3L, all.get("rank"));
    assertEquals(all.get("step_seconds"), plan.stepSeconds());
    assertTrue(plan.fits());
    assertTrue(plan.text().startsWith("rank 3 of 4 (4 data x 1 tensor x 1 stages) on v100-32g\n"), plan.text());
    try (Recipe planned = plan.recipe()) {
      assertEquals(1L, planned.get("zero"));
    }
    assertTrue(plan.report().contains("Plan of rank 3 of 4"));
    assertFalse(((List<?>) Json.parse(plan.trace())).isEmpty());
    plan.close();
    assertThrows(InvalidHandle.class, plan::json);
  }

  @Test
  void aTrainerForecastsItsStep() {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context)) {
      assertNull(((Map<?, ?>) Json.parse(trainer.forecast())).get("measured_seconds"));
      assertThrows(InvalidArgument.class, () -> trainer.forecast("{}"));
    }
  }

  @Test
  void whatIsWrongIsNamedAndWhatIsTooLargeDoesNotFit() {
    try (Model model = gpt(); Recipe recipe = new Recipe()) {
      var error = assertThrows(InvalidArgument.class, () -> new Plan(model, recipe, Map.of("machin", "h200")));
      assertTrue(error.getMessage().startsWith("new Plan: options: option \"machin\" is unknown; did you mean machine?"), error.getMessage());
      assertThrows(InvalidArgument.class, () -> new Plan(null, recipe));
      try (Plan large = new Plan(model, recipe, Map.of("machine", "h200", "device_memory", 1L << 30))) {
        assertFalse(large.fits());
      }
    }
  }
}
