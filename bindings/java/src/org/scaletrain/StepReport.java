package org.scaletrain;

/**
 * One optimizer step.
 *
 * @param skipped the gradient was not finite and nothing was updated
 * @param step its number, from 1 on
 * @param loss before the step's update
 * @param lr the learning rate
 * @param gradNorm the gradient's norm, before clipping
 * @param lossScale what the loss was multiplied with
 * @param tokens in this step
 * @param tokensPerSecond of this step
 * @param milliseconds it took
 * @param memoryBytes of the context's buffers
 * @param gradientNoiseScale NaN: not measured, or not known yet
 * @param saveError why a save of {@link Trainer#saveEvery} failed, told once; null: none did
 * @param savedStep of the newest checkpoint that these saves brought to the disk; -1: none yet
 */
public record StepReport(boolean skipped, long step, double loss, double lr, double gradNorm, double lossScale, long tokens,
    double tokensPerSecond, double milliseconds, long memoryBytes, double gradientNoiseScale, String saveError,
    long savedStep) {}
