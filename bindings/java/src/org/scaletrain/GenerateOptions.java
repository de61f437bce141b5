package org.scaletrain;

/** How {@link Predictor#generate} writes. */
public final class GenerateOptions {
  private long tokens = 200;
  private double temperature = 0.8;
  private long topK = 40;
  private long seed;

  /** 200 tokens, temperature 0.8, of the 40 likeliest, seed 0. */
  public GenerateOptions() {}

  /** How many at most. */
  public GenerateOptions tokens(long tokens) {
    this.tokens = tokens;
    return this;
  }

  /** Above 1: more even; towards 0: the likeliest. */
  public GenerateOptions temperature(double temperature) {
    this.temperature = temperature;
    return this;
  }

  /** Of so many likeliest. */
  public GenerateOptions topK(long topK) {
    this.topK = topK;
    return this;
  }

  /** Of the choices. */
  public GenerateOptions seed(long seed) {
    this.seed = seed;
    return this;
  }

  org.scaletrain.internal.GenerateOptions raw() {
    var raw = new org.scaletrain.internal.GenerateOptions();
    raw.setTokens(tokens);
    raw.setTemperature(temperature);
    raw.setTop_k(topK);
    raw.setSeed(seed);
    return raw;
  }
}
