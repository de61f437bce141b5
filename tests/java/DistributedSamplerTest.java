package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** The rows that a rank reads next, from Java. */
class DistributedSamplerTest {
  @Test
  void ranksShareAnEpochAndOthersGoOn() {
    TreeSet<Long> read = new TreeSet<>();
    for (int rank = 0; rank < 3; ++rank)
      try (var sampler = new DistributedSampler(23, rank, 3, 4)) {
        SampledRows taken = sampler.next(5);
        assertEquals(15, taken.all());
        assertEquals(15, sampler.cursor());
        for (long row : taken.rows()) assertTrue(read.add(row));
      }
    try (var alone = new DistributedSampler(23, 0, 1, 4)) {
      alone.setCursor(15);
      for (long row : alone.next(100).rows()) assertTrue(read.add(row));
      assertEquals(23, read.size());
      alone.setEpoch(0);
      assertEquals(0, alone.cursor());
    }
  }

  @Test
  void anEpochsEndIsAsAsked() {
    long[][] seconds = {{3, 4}, {}, {3, 4, 0}};
    for (LastRows last : LastRows.values())
      try (var sampler = new DistributedSampler(5, 0, 1, 0, false, last)) {
        assertArrayEquals(new long[] {0, 1, 2}, sampler.next(3).rows());
        assertArrayEquals(seconds[last.ordinal()], sampler.next(3).rows());
        assertThrows(InvalidArgument.class, () -> sampler.next(0));
      }
  }
}
