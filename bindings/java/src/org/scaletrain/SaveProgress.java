package org.scaletrain;

/**
 * Progress of the saves of a {@link Checkpoint}.
 *
 * @param bytesDone bytes written of the running save
 * @param bytesAll total bytes of the running save; 0 if none is running
 * @param waiting saves in the queue
 * @param saved saves that succeeded since the Checkpoint was created
 * @param failed saves that failed since the Checkpoint was created
 * @param savedStep step of the newest checkpoint on the disk; -1 if there is none
 * @param blockedSeconds time for which the last save blocked its caller
 * @param writeSeconds time that writing the last save took
 */
public record SaveProgress(long bytesDone, long bytesAll, long waiting, long saved, long failed, long savedStep, double blockedSeconds,
    double writeSeconds) {}
