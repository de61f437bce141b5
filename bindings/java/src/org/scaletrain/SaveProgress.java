package org.scaletrain;

/**
 * How far the saves of a {@link Checkpoint} are.
 *
 * @param bytesDone of the save that is being written
 * @param bytesAll of it; 0: none is
 * @param waiting saves behind it
 * @param saved since the checkpoint was made
 * @param failed likewise
 * @param savedStep of the newest that is on the disk; -1: none
 * @param blockedSeconds that the last save kept its caller
 * @param writeSeconds that the last one took to be written
 */
public record SaveProgress(long bytesDone, long bytesAll, long waiting, long saved, long failed, long savedStep, double blockedSeconds,
    double writeSeconds) {}
