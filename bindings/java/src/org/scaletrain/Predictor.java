package org.scaletrain;

import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/** Forward passes of a model, from any number of threads at once, also while a trainer steps. */
public final class Predictor extends Handle {
  private final org.scaletrain.internal.Predictor raw;

  /** Of a snapshot of the weights, one thread a run. */
  public Predictor(Model model) {
    this(model, new PredictorOptions());
  }

  /** As the options say. */
  @OfC("st_predictor_create")
  public Predictor(Model model, PredictorOptions options) {
    raw = new org.scaletrain.internal.Predictor(given(model, "Predictor").raw, options.raw());
    raw.keeps = model.raw;
  }

  /** Fills the outputs, any number of rows. */
  @OfC("st_predictor_run")
  public void run(Batch inputs, Batch outputs) {
    raw.run(Batch.pairsOf(inputs), Batch.pairsOf(outputs));
  }

  /** Takes the newest whole step's weights; running calls keep the old. */
  @OfC("st_predictor_refresh")
  public void refresh() {
    raw.refresh();
  }

  /** Continues the prompt: the new tokens. */
  public int[] generate(int[] prompt, GenerateOptions options) {
    IntStream.Builder made = IntStream.builder();
    generate(prompt, options, token -> {
      made.add(token);
      return true;
    });
    return made.build().toArray();
  }

  /** Continues the prompt; {@code onToken} gets each new token and gives false to end. What it throws arrives here. */
  @OfC("st_predictor_generate")
  public void generate(int[] prompt, GenerateOptions options, IntPredicate onToken) {
    raw.generate(prompt, options.raw(), onToken);
  }

  @Override
  @OfC("st_predictor_destroy")
  public void close() {
    raw.close();
  }
}
