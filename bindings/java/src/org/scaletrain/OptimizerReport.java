package org.scaletrain;

/**
 * One update by an {@link Optimizer}.
 *
 * @param skipped whether nothing was updated because a gradient was not finite
 * @param step number of updates so far
 * @param lr the learning rate
 * @param norm norm of all gradients together, before clipping
 */
public record OptimizerReport(boolean skipped, long step, double lr, double norm) {}
