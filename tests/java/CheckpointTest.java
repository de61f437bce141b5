package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.scaletrain.Accumulator;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Busy;
import org.scaletrain.Checkpoint;
import org.scaletrain.CheckpointError;
import org.scaletrain.CheckpointOptions;
import org.scaletrain.Context;
import org.scaletrain.DType;
import org.scaletrain.Data;
import org.scaletrain.InvalidHandle;
import org.scaletrain.LoadReport;
import org.scaletrain.Model;
import org.scaletrain.NotFound;
import org.scaletrain.Pending;
import org.scaletrain.ReadOptions;
import org.scaletrain.SaveProgress;
import org.scaletrain.ScaleTrainException;
import org.scaletrain.StepReport;
import org.scaletrain.Trainer;

/** A run's folder from Java: arrays of the program's own, and trainers that go on. */
class CheckpointTest {
  @TempDir Path folder;

  private static Array bytes(DType dtype, int count, int first, long... dims) {
    Array array = Array.allocate(dtype, dims);
    ByteBuffer all = array.bytes();
    for (int i = 0; i < count; ++i) all.put(i, (byte) (first + i));
    return array;
  }

  private static byte[] bytesOf(Array array, int count) {
    byte[] copy = new byte[count];
    array.bytes().get(0, copy);
    return copy;
  }

  private static void change(Path file, Consumer<byte[]> change) throws IOException {
    byte[] all = Files.readAllBytes(file);
    change.accept(all);
    Files.write(file, all);
  }

  private static Trainer trainer(Context context) {
    return new Trainer(Nets.mlp(context), Nets.recipe().dropout(0.1).emaDecay(0.9), Data.arrays(context, Nets.batch()));
  }

  @Test
  void arraysOfEveryTypeComeBackAsTheyWere() {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      for (DType dtype : DType.values()) {
        int count = 6 * dtype.bytes();
        Array from = bytes(dtype, dtype == DType.BOOL ? 0 : count, 1, 2, 3), to = Array.allocate(dtype, 2, 3);
        checkpoint.save(1, Batch.of("values", from));
        LoadReport report = checkpoint.load(Batch.of("values", to));
        assertArrayEquals(bytesOf(from, count), bytesOf(to, count), dtype.toString());
        assertEquals(1, report.read());
      }
    }
  }

  @Test
  void javasOwnArraysAreCopiedBothWays() {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      float[] values = {1, 2, 3, 4};
      long[] step = {7};
      checkpoint.save(7, Batch.of("w", Array.of(values, 2, 2), "step", Array.of(step)), Map.of("note", "größe", "loss", 0.5));
      float[] loaded = new float[4];
      long[] at = new long[1];
      LoadReport report = checkpoint.load(Batch.of("w", Array.of(loaded, 2, 2), "step", Array.of(at)));
      assertArrayEquals(values, loaded);
      assertArrayEquals(step, at);
      assertEquals("größe", report.metadata().get("note"));
      assertEquals(7, report.step());
      assertEquals("step-00000007", report.name());
    }
  }

  @Test
  void aSaveInTheBackgroundHasWhatTheArraysWere() {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      float[] values = {1, 2};
      try (Pending pending = checkpoint.beginSave(1, Batch.of("w", Array.of(values, 2)), Map.of())) {
        values[0] = 9;
        pending.await();
      }
      float[] loaded = new float[2];
      checkpoint.load(Batch.of("w", Array.of(loaded, 2)));
      assertArrayEquals(new float[] {1, 2}, loaded);
      SaveProgress progress = checkpoint.progress();
      assertEquals(1, progress.saved());
      assertEquals(1, progress.savedStep());
      assertTrue(checkpoint.await(Duration.ofSeconds(1)));
    }
  }

  @Test
  void errorsOfTheDiskAreTold() throws IOException {
    Path run = folder.resolve("run");
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, run)) {
      Batch arrays = Batch.of("w", Array.of(new float[2], 2));
      checkpoint.save(1, arrays);
      Files.writeString(run.resolve("step-00000002.part"), "in the way");
      Pending pending = checkpoint.beginSave(2, arrays, Map.of());
      CheckpointError error = assertThrows(CheckpointError.class, pending::await);
      assertTrue(error.getMessage().contains("step-00000002"), error.getMessage());
      pending.close();
      assertEquals(1, checkpoint.load(arrays).step());
    }
    assertThrows(ScaleTrainException.class, () -> new Checkpoint(new Context(), Files.writeString(folder.resolve("file"), "")));
  }

  @Test
  void oneSavesIntoAFolderAndOthersRead() {
    try (Context context = new Context(); Checkpoint first = new Checkpoint(context, folder)) {
      first.save(1, Batch.of("w", Array.of(new float[] {3}, 1)));
      Busy told = assertThrows(Busy.class, () -> new Checkpoint(context, folder));
      assertTrue(told.getMessage().contains(Long.toString(ProcessHandle.current().pid())), told.getMessage());
      try (Checkpoint reader = new Checkpoint(context, folder, new CheckpointOptions().readOnly())) {
        float[] loaded = new float[1];
        reader.load(Batch.of("w", Array.of(loaded, 1)));
        assertEquals(3, loaded[0]);
      }
    }
  }

  @Test
  void aNewestOneThatIsNotWholeIsPassedOverWithItsReason() throws IOException {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      checkpoint.save(1, Batch.of("w", Array.of(new float[] {1}, 1)));
      checkpoint.save(2, Batch.of("w", Array.of(new float[] {2}, 1)));
      change(folder.resolve("step-00000002/tensors.safetensors"), all -> all[all.length - 1] ^= 1);
      float[] loaded = new float[1];
      LoadReport report = checkpoint.load(Batch.of("w", Array.of(loaded, 1)));
      assertEquals(1, loaded[0]);
      assertEquals(1, report.skipped().size());
      assertTrue(report.skipped().get(0).contains("tensors.safetensors"), report.skipped().get(0));
      CheckpointError error = assertThrows(CheckpointError.class,
          () -> checkpoint.load(Batch.of("w", Array.of(loaded, 1)), "step-00000002", new ReadOptions()));
      assertEquals("w", error.tensor());
      assertEquals(1, ((List<?>) checkpoint.verify("step-00000002").get("problems")).size());
      assertEquals(List.of(), checkpoint.verify("step-00000001").get("problems"));
      assertEquals(List.of("step-00000002", "step-00000001"), checkpoint.list().stream().map(one -> one.get("name")).toList());
    }
  }

  @Test
  void arraysThatMayBeOverwrittenAreReadOnce() throws IOException {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      float[] values = {1, 2, 3}, own = {7, 7, 7};
      Array direct = Array.allocate(DType.F32, 3);
      checkpoint.save(1, Batch.of("own", Array.of(values), "direct", Array.of(values)));
      Batch to = Batch.of("own", Array.of(own), "direct", direct);
      ReadOptions options = new ReadOptions().overwrite();
      assertEquals(2, checkpoint.load(to, null, options).read());
      assertArrayEquals(values, own);
      assertArrayEquals(values, direct.toFloats());

      checkpoint.save(2, Batch.of("own", Array.of(own), "direct", direct));
      change(folder.resolve("step-00000002/tensors.safetensors"), all -> all[all.length - 1] ^= 1);
      direct.floats().put(0, new float[] {7, 7, 7});
      assertThrows(CheckpointError.class, () -> checkpoint.load(to, "step-00000002", new ReadOptions()));
      assertArrayEquals(new float[] {7, 7, 7}, direct.toFloats());
      CheckpointError error = assertThrows(CheckpointError.class, () -> checkpoint.load(to, "step-00000002", options));
      assertTrue(error.getMessage().contains("block 0"), error.getMessage());
      assertEquals(1, checkpoint.load(to, null, options).step());
      assertArrayEquals(values, direct.toFloats());
    }
  }

  @Test
  void aTrainerGoesOnBitByBit() throws IOException {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder.resolve("run"));
         Trainer first = trainer(context); Trainer second = trainer(context)) {
      first.saveEvery(checkpoint, 3, Duration.ZERO);
      StepReport report = null;
      for (int i = 0; i < 5; ++i) report = first.step();
      assertNull(report.saveError());
      checkpoint.await();
      assertEquals(3, first.step().savedStep());
      first.saveEvery(null, 0, Duration.ZERO);

      LoadReport loaded = second.resume(checkpoint, "step-00000003", new ReadOptions());
      assertEquals(3, loaded.step());
      assertEquals(List.of(), loaded.changed());
      for (int i = 3; i < 6; ++i) report = second.step();
      assertEquals(first.digest(), second.digest());
      second.save(checkpoint, Map.of("by", "second"));
      assertEquals(second.digest(), checkpoint.hash(null));
      assertEquals("second", ((Map<?, ?>) checkpoint.inspect(null).get("metadata")).get("by"));

      Model weights = Nets.mlp(context);
      assertEquals(weights.parameters().size(), weights.load(checkpoint).read());
      String name = weights.parameters().get(0).name();
      assertArrayEquals(second.average(name).dims(), weights.get(name).dims());

      checkpoint.reshard(folder.resolve("parts"), 2, null);
      try (Checkpoint parts = new Checkpoint(context, folder.resolve("parts"), new CheckpointOptions().readOnly())) {
        assertEquals(second.digest(), parts.hash(null));
      }
      checkpoint.export(folder.resolve("weights.safetensors"), false, null);
      Model read = Nets.mlp(context);
      read.readFile(folder.resolve("weights.safetensors"));
      assertEquals(weights.digest(), read.digest());
    }
  }

  @Test
  void whatDoesNotFitIsNamedAndChangesNothing() {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      assertThrows(NotFound.class, () -> checkpoint.load(Batch.of("w", Array.of(new float[1], 1))));
      checkpoint.save(1, Batch.of("w", Array.of(new float[] {1}, 1), "more", Array.of(new float[] {2}, 1)));
      float[] kept = {5};
      ScaleTrainException error =
          assertThrows(ScaleTrainException.class, () -> checkpoint.load(Batch.of("other", Array.of(kept, 1))));
      assertTrue(error.getMessage().contains("other"), error.getMessage());
      assertEquals(5, kept[0]);
      LoadReport report = checkpoint.load(
          Batch.of("v", Array.of(kept, 1)), null, new ReadOptions().partial().rename("more", "v"));
      assertEquals(2, kept[0]);
      assertEquals(List.of("w"), report.unexpected());
      assertThrows(ScaleTrainException.class, () -> checkpoint.save(2, Batch.of("w", Array.of(new float[1], 1)), Map.of("deep", Map.of())));
    }
    Checkpoint closed = new Checkpoint(new Context(), folder);
    closed.close();
    assertThrows(InvalidHandle.class, closed::list);
  }

  @Test
  void anAccumulatorIsSavedInTheMiddleOfAStep() {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      Array gradient = Array.allocate(DType.F32, 2);
      gradient.floats().put(0, new float[] {3, -6});
      Accumulator first = new Accumulator(context, 2, gradient);
      first.add(3);
      checkpoint.save(1, first.state());
      first.close();

      Accumulator second = new Accumulator(context, 2, gradient);
      checkpoint.load(second.state());
      gradient.floats().put(0, new float[] {1, 2});
      second.add(1);
      assertTrue(second.shouldStep());
      assertArrayEquals(new float[] {1, -1}, gradient.toFloats());
      second.close();
      assertThrows(InvalidHandle.class, second::state);
    }
  }
}
