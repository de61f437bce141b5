package org.scaletrain;

/**
 * One update by an {@link Optimizer}.
 *
 * @param skipped a gradient was not finite: nothing has changed
 * @param step updates so far
 * @param lr the learning rate
 * @param norm of all gradients together, before clipping
 */
public record OptimizerReport(boolean skipped, long step, double lr, double norm) {}
