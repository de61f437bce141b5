using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Checkpoints from C#: arrays of the program, and trainers that resume.</summary>
[TestFixture]
public class CheckpointTests {
  private Context context;
  private string folder;

  [SetUp]
  public void Begin() {
    context = new Context(new ContextOptions { Threads = 2 });
    folder = Path.Combine(Path.GetTempPath(), "scaletrain_" + Guid.NewGuid().ToString("N"));
  }

  [TearDown]
  public void End() {
    context.Dispose();
    if (Directory.Exists(folder)) Directory.Delete(folder, true);
  }

  private static Trainer NewTrainer(Context context) {
    using (var recipe = new Recipe { Batch = 32, Lr = 0.01, Dropout = 0.1, EmaDecay = 0.9 })
    using (Data data = Data.Arrays(context, Nets.Sine())) return new Trainer(Nets.Net(context), recipe, data);
  }

  [Test]
  public void ArraysOfEveryTypeComeBackAsTheyWere() {
    var from = new Batch {
      { "f32", new[] { 1.5f, -2 } }, { "f64", new[] { 1e300 } }, { "i32", new[] { 1, 2, 3 } }, { "i64", new[] { long.MinValue } }, { "u8", new byte[] { 255 } },
      { "bool", new[] { true, false } }, { "bf16", View.Bf16(new ushort[] { 0x3F80 }) }, { "f16", View.F16(new ushort[] { 0x3C00, 1 }) }
    };
    float[] f32 = new float[2];
    double[] f64 = new double[1];
    int[] i32 = new int[3];
    long[] i64 = new long[1];
    byte[] u8 = new byte[1];
    bool[] truth = new bool[2];
    ushort[] bf16 = new ushort[1], f16 = new ushort[2];
    using (var checkpoint = new Checkpoint(context, folder)) {
      checkpoint.Save(7, from, new { note = "größe \"x\"", loss = 0.5 });
      LoadReport report = checkpoint.Load(new Batch {
        { "f32", f32 }, { "f64", f64 }, { "i32", i32 }, { "i64", i64 }, { "u8", u8 }, { "bool", truth }, { "bf16", View.Bf16(bf16) }, { "f16", View.F16(f16) }
      });
      Assert.AreEqual(8, report.Read);
      Assert.AreEqual(7, report.Step);
      Assert.AreEqual("step-00000007", report.Name);
      Assert.AreEqual("größe \"x\"", report.Metadata["note"]);
    }
    CollectionAssert.AreEqual(new[] { 1.5f, -2 }, f32);
    CollectionAssert.AreEqual(new[] { 1e300 }, f64);
    CollectionAssert.AreEqual(new[] { 1, 2, 3 }, i32);
    CollectionAssert.AreEqual(new[] { long.MinValue }, i64);
    Assert.AreEqual(255, u8[0]);
    CollectionAssert.AreEqual(new[] { true, false }, truth);
    Assert.AreEqual(0x3F80, bf16[0]);
    CollectionAssert.AreEqual(new[] { 0x3C00, 1 }, f16);
  }

  [Test]
  public void ASaveInTheBackgroundHasWhatTheArraysWere() {
    using (var checkpoint = new Checkpoint(context, folder)) {
      float[] values = { 1, 2 }, loaded = new float[2];
      System.Threading.Tasks.Task saved = checkpoint.SaveAsync(1, new Batch { { "w", values } });
      values[0] = 9;
      saved.Wait();
      checkpoint.Load(new Batch { { "w", loaded } });
      CollectionAssert.AreEqual(new[] { 1f, 2 }, loaded);
      SaveProgress progress = checkpoint.Progress;
      Assert.AreEqual(1, progress.Saved);
      Assert.AreEqual(1, progress.SavedStep);
      Assert.IsTrue(checkpoint.Wait(TimeSpan.FromSeconds(1)));
    }
  }

  [Test]
  public void ATrainerGoesOnBitByBit() {
    using (var checkpoint = new Checkpoint(context, Path.Combine(folder, "run")))
    using (Trainer first = NewTrainer(context))
    using (Trainer second = NewTrainer(context)) {
      first.SaveEvery(checkpoint, 3);
      for (int i = 0; i < 5; ++i) Assert.IsNull(first.Step().SaveError);
      checkpoint.Wait();
      Assert.AreEqual(3, first.Step().SavedStep);
      first.SaveEvery(null);

      LoadReport loaded = second.Resume(checkpoint, "step-00000003");
      Assert.AreEqual(3, loaded.Step);
      Assert.IsEmpty(loaded.Changed);
      for (int i = 3; i < 6; ++i) second.Step();
      Assert.AreEqual(first.Digest(), second.Digest());
      second.Save(checkpoint, new { by = "second" });
      Assert.AreEqual(second.Digest(), checkpoint.Hash());
      StringAssert.Contains("second", checkpoint.Inspect());

      using (Model weights = Nets.Net(context))
      using (Model read = Nets.Net(context)) {
        Assert.AreEqual(weights.Parameters.Count, weights.Load(checkpoint).Read);
        checkpoint.Export(Path.Combine(folder, "weights.safetensors"));
        read.ReadFile(Path.Combine(folder, "weights.safetensors"));
        Assert.AreEqual(weights.Digest(), read.Digest());
      }
      checkpoint.Reshard(Path.Combine(folder, "parts"), 2);
      using (var parts = new Checkpoint(context, Path.Combine(folder, "parts"), new CheckpointOptions { ReadOnly = true })) Assert.AreEqual(second.Digest(), parts.Hash());
    }
  }

  [Test]
  public void ErrorsOfTheDiskAreThatOfTheSave() {
    using (var checkpoint = new Checkpoint(context, folder)) {
      File.WriteAllText(Path.Combine(folder, "step-00000002.part"), "in the way");
      using (Pending pending = checkpoint.BeginSave(2, new Batch { { "w", new float[2] } }))
        StringAssert.Contains("step-00000002", Assert.Throws<CheckpointException>(() => pending.Wait()).Message);
    }
  }

  [Test]
  public void OneSavesIntoAFolderAndOthersRead() {
    using (var first = new Checkpoint(context, folder)) {
      first.Save(1, new Batch { { "w", new[] { 3f } } });
      var busy = Assert.Throws<BusyException>(() => new Checkpoint(context, folder));
      StringAssert.Contains(Process.GetCurrentProcess().Id.ToString(), busy.Message);
      using (var reader = new Checkpoint(context, folder, new CheckpointOptions { ReadOnly = true }))
        Assert.AreEqual(1, reader.Load(new Batch { { "w", new float[1] } }).Read);
    }
  }

  [Test]
  public void OfADamagedOneArraysAreLeftAloneUnlessTheyMayBeOverwritten() {
    using (var checkpoint = new Checkpoint(context, folder)) {
      float[] w = { 1, 2, 3 };
      var arrays = new Batch { { "w", w } };
      checkpoint.Save(1, arrays);
      checkpoint.Save(2, arrays);
      string file = Path.Combine(folder, "step-00000002", "tensors.safetensors");
      byte[] all = File.ReadAllBytes(file);
      all[all.Length - 1] ^= 1;
      File.WriteAllBytes(file, all);

      Array.Clear(w, 0, 3);
      var error = Assert.Throws<CheckpointException>(() => checkpoint.Load(arrays, "step-00000002"));
      Assert.AreEqual("w", error.Tensor);
      Assert.AreEqual(file, error.File);
      Assert.AreEqual(new float[3], w);
      var overwrite = new LoadOptions { Overwrite = true };
      error = Assert.Throws<CheckpointException>(() => checkpoint.Load(arrays, "step-00000002", overwrite));
      StringAssert.Contains("block 0", error.Message);
      Assert.AreNotEqual(new float[3], w);  // read directly into the array
      Assert.AreEqual(1, checkpoint.Load(arrays, null, overwrite).Skipped.Count);
      Assert.AreEqual(new float[] { 1, 2, 3 }, w);
      StringAssert.Contains("tensors.safetensors", checkpoint.Verify("step-00000002"));
      StringAssert.Contains("step-00000002", checkpoint.List());
    }
  }

  [Test]
  public void WhatDoesNotFitIsNamed() {
    float[] kept = { 5 };
    var checkpoint = new Checkpoint(context, folder);
    checkpoint.Save(1, new Batch { { "w", new[] { 1f } }, { "more", new[] { 2f } } });
    Assert.Throws<InvalidArgumentException>(() => checkpoint.Load(new Batch { { "other", kept } }));
    var options = new LoadOptions { Partial = true, Rename = new Dictionary<string, string> { { "more", "v" } } };
    Assert.AreEqual(new[] { "w" }, checkpoint.Load(new Batch { { "v", kept } }, null, options).Unexpected);
    Assert.AreEqual(2, kept[0]);
    Assert.Catch<ScaleTrainException>(() => checkpoint.Save(2, new Batch { { "w", kept } }, new { deep = new { } }));
    checkpoint.Dispose();
    Assert.Throws<InvalidHandleException>(() => checkpoint.List());
  }
}
