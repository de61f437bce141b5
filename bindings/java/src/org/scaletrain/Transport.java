package org.scaletrain;

/**
 * A program's own transport between ranks ({@link Communicator#callbacks}). Both methods must return without waiting. They are called one at
 * a time but from several threads, one of which monitors the group. An exception means that the other rank can no longer be reached; it ends
 * the group and becomes the reason of the {@link RankFailed}.
 */
public interface Transport {
  /** Sends as many of the first {@code count} bytes to rank {@code to} as fit, after those sent before. Returns how many. */
  int write(int to, byte[] bytes, int count) throws Exception;

  /** Reads up to {@code most} bytes that have arrived from rank {@code from}. Returns how many; 0 if there are none. */
  int read(int from, byte[] bytes, int most) throws Exception;
}
