package org.scaletrain;

/**
 * How a rank reaches the others by a program's own means ({@link Communicator#callbacks}). Both return at once; they are called one at a
 * time, but from several threads: one of the library's looks after the group. What they throw says that the other rank can be reached no
 * more, and becomes the reason of the {@link RankFailed} that ends the group.
 */
public interface Transport {
  /** Takes what it can of the first {@code count} bytes for rank {@code to}, behind what it took before; how many. */
  int write(int to, byte[] bytes, int count) throws Exception;

  /** Gives what has come from rank {@code from}, at most so many bytes; how many, 0 where there is nothing. */
  int read(int from, byte[] bytes, int most) throws Exception;
}
