package org.scaletrain;

/**
 * One optimizer step.
 *
 * @param skipped whether nothing was updated because the gradient was not finite or too large to be clipped
 * @param step number of the step, from 1 on; skipped steps count
 * @param loss loss before the step's update
 * @param lr the learning rate
 * @param gradNorm norm of the gradient before clipping
 * @param lossScale factor that the loss was multiplied with
 * @param tokens tokens since step 1; rows of the loss for a model without tokens
 * @param tokensPerSecond speed of this step
 * @param milliseconds duration of this step
 * @param memoryBytes memory of all buffers
 * @param gradientNoiseScale the gradient noise scale; NaN if not measured or not known yet
 * @param saveError why a save of {@link Trainer#saveEvery} failed, reported once; null if none did
 * @param savedStep step of the newest checkpoint that these saves have written to the disk; -1 if none yet
 */
public record StepReport(boolean skipped, long step, double loss, double lr, double gradNorm, double lossScale, long tokens,
    double tokensPerSecond, double milliseconds, long memoryBytes, double gradientNoiseScale, String saveError,
    long savedStep) {}
