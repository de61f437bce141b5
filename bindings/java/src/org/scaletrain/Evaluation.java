package org.scaletrain;

import java.util.Map;

/**
 * A model on data it is not trained on, dropout off.
 *
 * @param loss mean over the counted rows
 * @param rows that were counted
 * @param metrics the mean of each output named {@code metric.*}
 */
public record Evaluation(double loss, double rows, Map<String, Double> metrics) {}
