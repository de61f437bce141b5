package org.scaletrain;

/**
 * A call of a {@link Stage}: the part of the model, the chunk of this rank and the micro-batch of this run, each from 0. The arrays are the
 * pipeline's and valid during the call. Their elements stay from the forward of a micro-batch to its backwardWeight, so later calls get them
 * again. Forward writes {@code output} and backwardInput {@code inputGradient}, completely; the others are only read. An array is null where
 * there is nothing: the first part has no input, the last one no output, and forward no gradients.
 */
public record StageWork(int part, int chunk, int microBatch, BorrowedArray input, BorrowedArray output, BorrowedArray outputGradient,
    BorrowedArray inputGradient) {}
