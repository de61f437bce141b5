package org.scaletrain;

import java.util.Map;

/**
 * The result of evaluating a model on data, with dropout off.
 *
 * @param loss mean over the counted rows
 * @param rows number of counted rows
 * @param metrics the mean of each output named {@code metric.*}
 */
public record Evaluation(double loss, double rows, Map<String, Double> metrics) {}
