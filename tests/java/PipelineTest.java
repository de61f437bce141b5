package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.*;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** A pipeline of the program's own stages, from Java. */
class PipelineTest {
  private static final int SIZE = 5;

  /** y = w x + part, elementwise; the last part's loss is half the sum of (y - 1)^2. */
  private static class Parts implements Stage {
    final float[] sums;  // gradients of the weights, by chunk
    final Map<Integer, float[]> last = new HashMap<>();

    Parts(float[] sums) {
      this.sums = sums;
    }

    static Pipeline on(Communicator own, String schedule, Stage stage, int chunks) {
      List<ArrayType> types = Collections.nCopies(chunks, ArrayType.f32(SIZE));
      return new Pipeline(own, schedule, types, types, stage);
    }

    static float weight(StageWork work) {
      return 0.9F + 0.03F * work.part();
    }

    static float input(StageWork work, int i) {
      return work.input() == null ? 0.1F * (i + 3 * work.microBatch()) : work.input().getFloat(i);
    }

    float outputGradient(StageWork work, int i) {
      return work.outputGradient() == null ? last.get(work.microBatch())[i] - 1 : work.outputGradient().getFloat(i);
    }

    @Override
    public void forward(StageWork work) {
      float[] y = new float[SIZE];
      for (int i = 0; i < SIZE; ++i) y[i] = weight(work) * input(work, i) + work.part();
      if (work.output() == null) last.put(work.microBatch(), y);
      else work.output().set(0, y);
    }

    @Override
    public void backwardInput(StageWork work) {
      if (work.inputGradient() == null) return;
      for (int i = 0; i < SIZE; ++i) work.inputGradient().setFloat(i, weight(work) * outputGradient(work, i));
    }

    @Override
    public void backwardWeight(StageWork work) {
      for (int i = 0; i < SIZE; ++i) sums[work.chunk()] += input(work, i) * outputGradient(work, i);
    }
  }

  /** The sums of each rank. Only the pipeline refers to its stage. */
  private static List<float[]> sums(Context context, int ranks, String schedule, int chunks) throws Exception {
    return Nets.onEach(Communicator.local(context, ranks), own -> {
      float[] sums = new float[chunks];
      try (Pipeline pipeline = Parts.on(own, schedule, new Parts(sums), chunks)) {
        if (ranks == 1) Nets.stress();
        pipeline.run(3);
      }
      return sums;
    });
  }

  @Test
  void schedulesHaveTheSumsOfOneRank() throws Exception {
    try (Context context = new Context()) {
      float[] one = sums(context, 1, "interleaved", 4).get(0);  // by part
      assertNotEquals(0, one[0]);
      List<float[]> interleaved = sums(context, 2, "interleaved", 2), v = sums(context, 2, "zb-v", 2);
      assertArrayEquals(new float[] {one[0], one[2]}, interleaved.get(0));
      assertArrayEquals(new float[] {one[1], one[3]}, interleaved.get(1));
      assertArrayEquals(new float[] {one[0], one[3]}, v.get(0));
      assertArrayEquals(new float[] {one[1], one[2]}, v.get(1));
    }
  }

  @Test
  void arraysAreValidDuringTheirCall() throws Exception {
    try (Context context = new Context()) {
      Nets.onEach(Communicator.local(context, 2), own -> {
        List<BorrowedArray> seen = new ArrayList<>();
        Pipeline pipeline = Parts.on(own, "1f1b", new Parts(new float[1]) {
          @Override
          public void forward(StageWork work) {
            super.forward(work);
            assertNull(work.outputGradient());
            assertEquals(own.rank() == 0, work.input() == null);
            assertEquals(own.rank(), work.part());
            BorrowedArray given = own.rank() == 0 ? work.output() : work.input();
            assertEquals(own.rank() == 0, given.isWritable());
            assertEquals(ArrayType.f32(SIZE), given.type());
            seen.add(given);
            assertThrows(Busy.class, own::barrier);
          }
        }, 1);
        assertTrue(pipeline.schedule(4).contains("\"in_flight\":[2,1]"), pipeline.schedule(4));
        pipeline.run(4);
        assertEquals(4, seen.size());
        assertThrows(WrongState.class, () -> seen.get(0).getFloat(0));
        InvalidArgument refused = assertThrows(InvalidArgument.class, () -> pipeline.schedule(0));
        assertTrue(refused.getMessage().contains("got 0"), refused.getMessage());
        pipeline.close();
        pipeline.close();
        assertThrows(InvalidHandle.class, () -> pipeline.run(1));
        assertThrows(InvalidHandle.class, () -> pipeline.schedule(1));
        assertThrows(InvalidArgument.class, () -> Parts.on(own, "1f1b", null, 1));
        return null;
      });
    }
  }

  @Test
  void anExceptionOfOneEndsAll() throws Exception {
    RuntimeException gone = new RuntimeException("the sensor is gone");
    try (Context context = new Context()) {
      Nets.onEach(Communicator.local(context, 2), own -> {
        try (Pipeline pipeline = Parts.on(own, "zb-h1", new Parts(new float[1]) {
          @Override
          public void backwardWeight(StageWork work) {
            if (own.rank() == 1 && work.microBatch() == 1) throw gone;
          }
        }, 1)) {
          RuntimeException thrown = assertThrows(RuntimeException.class, () -> pipeline.run(3));
          if (own.rank() == 1) {
            assertSame(gone, thrown);
          } else {
            assertTrue(thrown instanceof RankFailed && thrown.getMessage().contains("the sensor is gone"), thrown.toString());
          }
          assertThrows(RankFailed.class, own::barrier);
        }
        return null;
      });
    }
  }
}
