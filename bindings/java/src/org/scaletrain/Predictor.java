package org.scaletrain;

import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/** Runs forward passes of a model. Any number of threads may use it at once, even while a trainer steps. */
public final class Predictor extends Handle {
  private final org.scaletrain.internal.Predictor raw;

  /** With a snapshot of the weights and one thread per run. */
  public Predictor(Model model) {
    this(model, new PredictorOptions());
  }

  /** With these options. */
  @OfC("st_predictor_create")
  public Predictor(Model model, PredictorOptions options) {
    this(new org.scaletrain.internal.Predictor(given(model, "Predictor").raw, options.raw()), model);
  }

  private Predictor(org.scaletrain.internal.Predictor raw, Model model) {
    this.raw = raw;
    raw.keeps = model.raw;
  }

  /**
   * A predictor that all ranks create, whose runs, refreshes and generations all ranks make too, each with its own rows or text. It works for
   * every model; the constructors throw {@link WrongState} for one that is sharded over ranks.
   */
  @OfC("st_predictor_create_collective")
  public static Predictor collective(Model model, PredictorOptions options) {
    return new Predictor(
        org.scaletrain.internal.Predictor.collective(given(model, "Predictor.collective").raw, options.raw()), model);
  }

  /** Computes the outputs for any number of rows. */
  @OfC("st_predictor_run")
  public void run(Batch inputs, Batch outputs) {
    raw.run(Batch.pairsOf(inputs), Batch.pairsOf(outputs));
  }

  /** Switches to the weights of the newest finished step. Running calls keep the old weights. */
  @OfC("st_predictor_refresh")
  public void refresh() {
    raw.refresh();
  }

  /** Continues the prompt. Returns the new tokens. */
  public int[] generate(int[] prompt, GenerateOptions options) {
    IntStream.Builder made = IntStream.builder();
    generate(prompt, options, token -> {
      made.add(token);
      return true;
    });
    return made.build().toArray();
  }

  /** Continues the prompt. {@code onToken} receives each new token and returns false to stop. Its exceptions are rethrown here. */
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
