package org.scaletrain;

/** Options of {@link Predictor#generate}. */
public final class GenerateOptions {
  private long tokens = 200;
  private double temperature = 0.8;
  private long topK = 40;
  private long seed;

  /** 200 tokens, temperature 0.8, top-k 40, seed 0. */
  public GenerateOptions() {}

  /** Maximum number of new tokens. */
  public GenerateOptions tokens(long tokens) {
    this.tokens = tokens;
    return this;
  }

  /** Above 1 the choice is more uniform; towards 0 it becomes the likeliest token. */
  public GenerateOptions temperature(double temperature) {
    this.temperature = temperature;
    return this;
  }

  /** Chooses among this many likeliest tokens. */
  public GenerateOptions topK(long topK) {
    this.topK = topK;
    return this;
  }

  /** Seed of the random choices. */
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
