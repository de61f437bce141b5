package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.scaletrain.DistributedSampler;
import org.scaletrain.InvalidArgument;
import org.scaletrain.LastRows;
import org.scaletrain.SampledRows;

/** Which rows a rank reads next, from Java. */
class DistributedSamplerTest {
  @Test
  void ranksShareAnEpochAndOthersGoOn() {
    List<Long> read = new ArrayList<>();
    for (int rank = 0; rank < 3; ++rank)
      try (var sampler = new DistributedSampler(23, rank, 3, 4)) {
        SampledRows taken = sampler.next(5);
        assertEquals(15, taken.all());
        assertEquals(15, sampler.cursor());
        for (long row : taken.rows()) read.add(row);
      }
    try (var alone = new DistributedSampler(23, 0, 1, 4)) {
      alone.setCursor(15);
      for (long row : alone.next(100).rows()) read.add(row);
      assertEquals(0, alone.next(100).all());
      alone.setEpoch(0);
      assertEquals(read.get(0), alone.next(1).rows()[0]);
    }
    assertArrayEquals(LongStream.range(0, 23).toArray(), read.stream().mapToLong(row -> row).sorted().toArray());
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
    assertThrows(InvalidArgument.class, () -> new DistributedSampler(5, 2, 2, 0));
  }
}
