package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.scaletrain.*;

/** Checkpoints from Java: arrays of the program, and trainers that resume. */
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
  void errorsOfTheDiskAreThatOfTheSave() throws IOException {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      Files.writeString(folder.resolve("step-00000002.part"), "in the way");
      try (Pending pending = checkpoint.beginSave(2, Batch.of("w", Array.of(new float[2])), Map.of())) {
        CheckpointError error = assertThrows(CheckpointError.class, pending::await);
        assertTrue(error.getMessage().contains("step-00000002"), error.getMessage());
      }
    }
  }

  @Test
  void oneSavesIntoAFolderAndOthersRead() {
    try (Context context = new Context(); Checkpoint first = new Checkpoint(context, folder)) {
      first.save(1, Batch.of("w", Array.of(new float[] {3})));
      Busy busy = assertThrows(Busy.class, () -> new Checkpoint(context, folder));
      assertTrue(busy.getMessage().contains(Long.toString(ProcessHandle.current().pid())), busy.getMessage());
      try (Checkpoint reader = new Checkpoint(context, folder, new CheckpointOptions().readOnly())) {
        assertEquals(1, reader.load(Batch.of("w", Array.of(new float[1]))).read());
      }
    }
  }

  @Test
  void ofADamagedOneArraysAreLeftAloneUnlessTheyMayBeOverwritten() throws IOException {
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder)) {
      Array direct = Nets.filled(3, 1);
      float[] heap = {1, 1, 1};
      Batch arrays = Batch.of("own", Array.of(heap), "direct", direct);
      checkpoint.save(1, arrays);
      checkpoint.save(2, arrays);
      Path file = folder.resolve("step-00000002/tensors.safetensors");
      byte[] all = Files.readAllBytes(file);
      all[all.length - 1] ^= 1;
      Files.write(file, all);

      direct.floats().put(0, new float[] {7, 7, 7});
      CheckpointError error = assertThrows(CheckpointError.class, () -> checkpoint.load(arrays, "step-00000002", new ReadOptions()));
      assertTrue(Set.of("own", "direct").contains(error.tensor()), error.tensor());
      assertEquals(file.toString(), error.file());
      assertArrayEquals(new float[] {7, 7, 7}, direct.toFloats());
      ReadOptions overwrite = new ReadOptions().overwrite();
      error = assertThrows(CheckpointError.class, () -> checkpoint.load(arrays, "step-00000002", overwrite));
      assertTrue(error.getMessage().contains("block 0"), error.getMessage());
      Arrays.fill(heap, 7);
      LoadReport report = checkpoint.load(arrays, null, overwrite);
      assertEquals(1, report.skipped().size());
      assertArrayEquals(new float[] {1, 1, 1}, heap);
      assertArrayEquals(heap, direct.toFloats());
      assertEquals(1, ((List<?>) checkpoint.verify("step-00000002").get("problems")).size());
      assertEquals(List.of("step-00000002", "step-00000001"), checkpoint.list().stream().map(one -> one.get("name")).toList());
    }
  }

  @Test
  void aTrainerGoesOnBitByBit() {
    Recipe recipe = Nets.recipe().dropout(0.1).emaDecay(0.9);
    try (Context context = new Context(); Checkpoint checkpoint = new Checkpoint(context, folder.resolve("run"));
         Data data = Data.arrays(context, Nets.batch()); Trainer first = new Trainer(Nets.mlp(context), recipe, data);
         Trainer second = new Trainer(Nets.mlp(context), recipe, data)) {
      first.saveEvery(checkpoint, 3, Duration.ZERO);
      for (int i = 0; i < 5; ++i) assertNull(first.step().saveError());
      checkpoint.await();
      assertEquals(3, first.step().savedStep());
      first.saveEvery(null, 0, Duration.ZERO);

      LoadReport loaded = second.resume(checkpoint, "step-00000003", new ReadOptions());
      assertEquals(3, loaded.step());
      assertEquals(List.of(), loaded.changed());
      for (int i = 3; i < 6; ++i) second.step();
      assertEquals(first.digest(), second.digest());
      second.save(checkpoint, Map.of("by", "second"));
      assertEquals(second.digest(), checkpoint.hash(null));
      assertEquals("second", ((Map<?, ?>) checkpoint.inspect(null).get("metadata")).get("by"));

      checkpoint.reshard(folder.resolve("parts"), 2, null);
      try (Checkpoint parts = new Checkpoint(context, folder.resolve("parts"), new CheckpointOptions().readOnly())) {
        assertEquals(second.digest(), parts.hash(null));
      }
      Model weights = Nets.mlp(context), read = Nets.mlp(context);
      assertEquals(weights.parameters().size(), weights.load(checkpoint).read());
      checkpoint.export(folder.resolve("weights.safetensors"), false, null);
      read.readFile(folder.resolve("weights.safetensors"));
      assertEquals(weights.digest(), read.digest());
    }
  }

  @Test
  void whatDoesNotFitIsNamed() {
    float[] kept = {5};
    Checkpoint checkpoint = new Checkpoint(new Context(), folder);
    checkpoint.save(1, Batch.of("w", Array.of(new float[] {1}), "more", Array.of(new float[] {2})));
    assertThrows(InvalidArgument.class, () -> checkpoint.load(Batch.of("other", Array.of(kept))));
    LoadReport report = checkpoint.load(Batch.of("v", Array.of(kept)), null, new ReadOptions().partial().rename("more", "v"));
    assertEquals(2, kept[0]);
    assertEquals(List.of("w"), report.unexpected());
    assertThrows(ScaleTrainException.class, () -> checkpoint.save(2, Batch.of("w", Array.of(kept)), Map.of("deep", Map.of())));
    checkpoint.close();
    assertThrows(InvalidHandle.class, checkpoint::list);
  }
}
