package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Communicator;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.Model;
import org.scaletrain.RankFailed;
import org.scaletrain.Recipe;
import org.scaletrain.ScaleTrainException;
import org.scaletrain.Trainer;

/** Trainers that are each a rank, on a thread of its own. */
class RankTrainersTest {
  private static final int MICRO_BATCHES = 4, ROWS = 2; // of one

  private static Recipe recipe() {
    return new Recipe().batch(ROWS).microBatches(MICRO_BATCHES).lr(0.01).warmup(0);
  }

  /** The rows of Nets' batch that are a rank's: micro-batches in turn. */
  private static Batch rowsOf(int rank, int size) {
    List<Float> x = new ArrayList<>();
    for (int i = 0; i < MICRO_BATCHES * ROWS; ++i)
      if (i / ROWS % size == rank) x.add(i / 4f);
    float[] in = new float[x.size()], out = new float[x.size()];
    for (int i = 0; i < in.length; ++i) {
      in[i] = x.get(i);
      out[i] = in[i] * in[i];
    }
    return Batch.of("x", Array.of(in, in.length, 1), "y", Array.of(out, in.length, 1));
  }

  private static <T> List<T> onEach(Context context, int size, Function<Communicator, T> act) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(size);
    try {
      List<Future<T>> all = new ArrayList<>();
      for (Communicator own : Communicator.local(context, size)) all.add(threads.submit(() -> act.apply(own)));
      List<T> made = new ArrayList<>();
      for (Future<T> one : all) made.add(one.get());
      return made;
    } finally {
      threads.shutdown();
    }
  }

  private static Set<String> states(Context context, int size) throws Exception {
    return new HashSet<>(onEach(context, size, own -> {
      try (Trainer trainer = new Trainer(Nets.mlp(context), recipe(), null, own)) {
        for (int i = 0; i < 3; ++i) trainer.step(rowsOf(own.rank(), size));
        return trainer.digest();
      }
    }));
  }

  @Test
  void leaveTheBitsOfOne() throws Exception {
    try (Context context = new Context()) {
      Set<String> alone = states(context, 1);
      assertEquals(1, alone.size());
      assertEquals(alone, states(context, 2));
      assertEquals(alone, states(context, 3));
    }
  }

  private static long heldInParameters(Context context) {
    return context.memory().roles().stream().filter(use -> use.role().equals("parameters")).mapToLong(use -> use.bytes()).sum();
  }

  @Test
  void lateParametersAreMadeWhereTheyAreAskedFor() {
    try (Context context = new Context(); Context late = new Context(new ContextOptions().lateParameters());
        Model here = Nets.mlp(context); Model model = Nets.mlp(late)) {
      assertEquals(0, heldInParameters(late));
      assertEquals(here.digest(), model.digest());
      assertTrue(heldInParameters(late) > 0);
    }
  }

  @Test
  void withPiecesOfAModelReadItTogether() throws Exception {
    try (Context context = new Context(new ContextOptions().lateParameters())) {
      Set<String> alone = new HashSet<>(onEach(context, 1, own -> weightsOf(context, own, recipe())));
      assertEquals(alone, new HashSet<>(onEach(context, 2, own -> weightsOf(context, own, recipe().zero(3)))));
    }
  }

  private static String weightsOf(Context context, Communicator own, Recipe recipe) {
    try (Model model = Nets.mlp(context); Trainer trainer = new Trainer(model, recipe, null, own)) {
      trainer.step(rowsOf(own.rank(), own.size()));
      return model.digest();
    }
  }

  @Test
  void ofTwoRunsAreRefusedOnBoth() throws Exception {
    try (Context context = new Context()) {
      for (String told : onEach(context, 2, own -> {
        Recipe other = recipe().lr(0.125 * (1 + own.rank()));
        return assertThrows(RankFailed.class, () -> new Trainer(Nets.mlp(context), other, null, own)).getMessage();
      })) assertTrue(told.contains("has lr 0.25, rank 0 has 0.125"), told);
    }
  }

  @Test
  void aBatchThatDoesNotFitOneRankIsToldToAll() throws Exception {
    try (Context context = new Context()) {
      List<String> told = onEach(context, 3, own -> {
        try (Trainer trainer = new Trainer(Nets.mlp(context), recipe(), null, own)) {
          trainer.step(rowsOf(own.rank(), 3));
          Batch wrong = Batch.of("x", Array.of(new float[4], 2, 2), "y", Array.of(new float[2], 2, 1));
          Batch next = own.rank() == 1 ? wrong : rowsOf(own.rank(), 3);
          return assertThrows(ScaleTrainException.class, () -> trainer.step(next)).getMessage();
        }
      });
      for (int rank : Arrays.asList(0, 2)) assertTrue(told.get(rank).contains("rank 1") && told.get(rank).contains("[2, 2]"), told.get(rank));
    }
  }
}
