using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace ScaleTrain {

/// <summary>Trains a model according to a recipe, one optimizer step at a time. The whole step is planned in advance. With data, steps read their
/// rows from it; without, the program passes a batch to each step.</summary>
/// <remarks>On ranks of a <see cref="Communicator"/>, calls that read weights or state come in pairs. Without a suffix they read what this rank has,
/// and throw <see cref="WrongStateException"/> at once if other ranks have parts of it. Those that end in Collective are called by all ranks, in
/// the same order, and work for every recipe. All ranks make the steps, Resume and UseAverage.</remarks>
public sealed class Trainer : Handle {
  private readonly Native.Trainer native;
  private readonly IReadOnlyList<ParameterInfo> parameters;  // a copy: the model may be disposed first
  private object rate;
  private readonly LastingPins forwarded, sliced;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>If data is null, each step takes a batch. If ranks is not null, this trainer is one rank of it: each rank creates a trainer with
  /// the same model, recipe and data and makes the same steps. A step reads the rank's share of the data, or, if data is null, the rows that the
  /// rank passes. Losses and states equal those of a single rank. If the ranks differ, all of them throw the same
  /// <see cref="RankFailedException"/>.</summary>
  [OfC("st_trainer_create", "st_trainer_create_in_group")]
  public Trainer(Model model, Recipe recipe, Data data = null, Communicator ranks = null) {
    native = Made(Given(model, "model").native, Given(recipe, "recipe").native, data, ranks);
    parameters = model.Parameters;
    Safe.KeepWhat(model.Safe);
    if (data != null) Safe.KeepWhat(data.Safe);
    forwarded = new LastingPins(Safe);
    sliced = new LastingPins(Safe);
  }

  private static Native.Trainer Made(Native.Model model, Native.Recipe recipe, Data data, Communicator ranks) {
    if (ranks == null) return data == null ? new Native.Trainer(model, recipe) : new Native.Trainer(model, recipe, data.native);
    return data == null ? new Native.Trainer(model, recipe, ranks.native) : new Native.Trainer(model, recipe, data.native, ranks.native);
  }

  /// <summary>Raised after each step, on the thread that made the step. An exception of a listener is rethrown there.</summary>
  public event Action<StepReport> Stepped;

  /// <summary>One optimizer step on a batch: arrays by the names of the model's inputs, whose first dimension is the rows. null means the data's
  /// next rows. If it throws, the state is that of the last finished step.</summary>
  [OfC("st_trainer_step")]
  public StepReport Step(Batch batch = null) {
    using (Turn.Of(Safe, "Trainer.Step")) {
      if (batch == null) return Told(StepReport.Of(native.step(IntPtr.Zero)));
      using (Pins pins = Pins.Borrow(Filled(batch, "batch", "the data's next rows"))) return Told(StepReport.Of(native.step(pins.All)));
    }
  }

  /// <summary>Steps until the trainer has done <paramref name="steps"/> in total, or until <see cref="Stop"/> is called.</summary>
  public void Run(long steps) { Run(steps, (Func<StepReport, bool>)null); }

  /// <summary>The same, or until <paramref name="onStep"/> returns false. It receives the report of each step and may make every call except Run. An
  /// exception that it throws ends the run and is rethrown here.</summary>
  [OfC("st_trainer_run")]
  public void Run(long steps, Func<StepReport, bool> onStep) {
    Func<StepReport, bool> sees = onStep;
    if (Stepped != null) sees = report => {
      Told(report);
      return onStep == null || onStep(report);
    };
    using (Turn.Of(Safe, "Trainer.Run")) native.run(steps, Bridge.Strong(Safe, sees));
  }

  /// <summary>The same, reporting each step to progress.</summary>
  public void Run(long steps, IProgress<StepReport> progress) {
    Given(progress, "progress");
    Run(steps, report => {
      progress.Report(report);
      return true;
    });
  }

  /// <summary><see cref="Step"/> on another thread. The token cancels it. Do not change the arrays until the task is done.</summary>
  public Task<StepReport> StepAsync(Batch batch = null, CancellationToken token = default(CancellationToken)) {
    return Task.Run(() => new CancellableCall(token, native.cancel, ForgetCancel).Do(() => Step(batch)), token);
  }

  /// <summary><see cref="Run(long)"/> on a separate thread, reporting each step. The token ends it at the next instruction of a step; the state
  /// is then that of the last finished step.</summary>
  public Task RunAsync(long steps, IProgress<StepReport> progress = null, CancellationToken token = default(CancellationToken)) {
    Action run = () => {
      long done = 0;
      new CancellableCall(token, native.cancel, ForgetCancel).Do(() => {
        Run(steps, report => {
          done = report.Step;
          progress?.Report(report);
          return !token.IsCancellationRequested;
        });
        return true;
      });
      if (done < steps) token.ThrowIfCancellationRequested();
    };
    return Task.Factory.StartNew(run, token, TaskCreationOptions.LongRunning, TaskScheduler.Default);
  }

  /// <summary>Works on the step for about this long. Returns the report if the step is finished; otherwise null: call again with the same
  /// batch.</summary>
  [OfC("st_trainer_advance")]
  public StepReport? Advance(TimeSpan budget, Batch batch = null) {
    long nanoseconds = Math.Min(Math.Max(0, budget.Ticks), long.MaxValue / 100) * 100;
    using (Turn.Of(Safe, "Trainer.Advance")) {
      Record record = batch == null ? native.work(IntPtr.Zero, nanoseconds)
                                    : sliced.For(Filled(batch, "batch", "the data's next rows"), arrays => native.work(arrays, nanoseconds));
      if (record.IsNone) return null;
      sliced.End();
      return Told(StepReport.Of(record));
    }
  }

  /// <summary>Begins a step whose loss the program computes. Returns the model's outputs by name, copied to arrays of their dtype.
  /// <see cref="Backward"/> and <see cref="Apply"/> must follow.</summary>
  [OfC("st_trainer_forward")]
  public Batch Forward(Batch batch) {
    Given(batch, "batch");
    using (Turn.Of(Safe, "Trainer.Forward")) {
      Record record = forwarded.For(batch, native.forward);
      forwarded.EndAllButLast();
      var outputs = new Batch();
      for (long left = record.Integer(); left > 0; --left) {
        string name = record.Text();
        DType dtype = NativeArrays.Next(ref record, out long[] dims, out long bytes, out IntPtr address);
        outputs.Add(name, NativeArrays.Copy(dtype, dims, address));
      }
      return outputs;
    }
  }

  /// <summary><see cref="Forward"/> that writes outputs to arrays of the program instead, each of an output's dtype and dims. On a device they may
  /// be in its memory. Outputs left out are not copied.</summary>
  [OfC("st_trainer_forward_into")]
  public void ForwardInto(Batch batch, Batch outputs) {
    Given(batch, "batch");
    using (Turn.Of(Safe, "Trainer.ForwardInto"))
    using (Pins filled = Pins.Borrow(Given(outputs, "outputs"))) {
      forwarded.For(batch, pinned => {
        native.forward_into(pinned, filled.All);
        return true;
      });
      forwarded.EndAllButLast();
    }
  }

  /// <summary>Takes the gradients of the loss by output name; null means the graph's own loss.</summary>
  [OfC("st_trainer_backward")]
  public void Backward(Batch outputGradients = null) {
    using (Turn.Of(Safe, "Trainer.Backward")) {
      if (outputGradients == null) {
        native.backward(IntPtr.Zero);
      } else {
        using (Pins pins = Pins.Borrow(Filled(outputGradients, "outputGradients", "the graph's own loss"))) native.backward(pins.All);
      }
      forwarded.End();
    }
  }

  /// <summary>Clips, updates, and ends the step that <see cref="Forward"/> began.</summary>
  [OfC("st_trainer_apply")]
  public StepReport Apply() {
    using (Turn.Of(Safe, "Trainer.Apply")) return Told(StepReport.Of(native.apply()));
  }

  /// <summary>The loss and metrics over all rows, with dropout off.</summary>
  [OfC("st_trainer_evaluate")]
  public Evaluation Evaluate(Data data) {
    using (Turn.Of(Safe, "Trainer.Evaluate")) return new Evaluation(native.evaluate(Given(data, "data").native));
  }

  /// <summary><see cref="Evaluate"/>, called by all ranks with the same rows.</summary>
  [OfC("st_trainer_evaluate_collective")]
  public Evaluation EvaluateCollective(Data data) {
    using (Turn.Of(Safe, "Trainer.EvaluateCollective")) return new Evaluation(native.evaluate_collective(Given(data, "data").native));
  }

  /// <summary><see cref="Evaluate"/> with the moving averages (recipe key ema_decay) in place of the weights.</summary>
  [OfC("st_trainer_evaluate_average")]
  public Evaluation EvaluateAverage(Data data) {
    using (Turn.Of(Safe, "Trainer.EvaluateAverage")) return new Evaluation(native.evaluate_average(Given(data, "data").native));
  }

  /// <summary><see cref="EvaluateAverage"/>, called by all ranks with the same rows.</summary>
  [OfC("st_trainer_evaluate_average_collective")]
  public Evaluation EvaluateAverageCollective(Data data) {
    using (Turn.Of(Safe, "Trainer.EvaluateAverageCollective"))
      return new Evaluation(native.evaluate_average_collective(Given(data, "data").native));
  }

  /// <summary>Copies a parameter's moving average to an array of the same dims.</summary>
  [OfC("st_trainer_average")]
  public void Average(string name, View to) {
    using (Turn.Of(Safe, "Trainer.Average"))
      using (Pins pins = Pins.Borrow(to, "to")) native.average(Given(name, "name"), pins.First);
  }

  /// <summary>The same into a new array.</summary>
  public float[] Average(string name) { return Made(name, Average); }

  /// <summary><see cref="Average(string, View)"/>, called by all ranks with the same name.</summary>
  [OfC("st_trainer_average_collective")]
  public void AverageCollective(string name, View to) {
    using (Turn.Of(Safe, "Trainer.AverageCollective"))
      using (Pins pins = Pins.Borrow(to, "to")) native.average_collective(Given(name, "name"), pins.First);
  }

  /// <summary>The same into a new array.</summary>
  public float[] AverageCollective(string name) { return Made(name, AverageCollective); }

  /// <summary>Replaces the model's weights by their moving averages.</summary>
  [OfC("st_trainer_use_average")]
  public void UseAverage() {
    using (Turn.Of(Safe, "Trainer.UseAverage")) native.use_average();
  }

  /// <summary>Copies a parameter's gradient in the last step, before clipping, to a float array of the same dims.</summary>
  [OfC("st_trainer_gradient")]
  public void Gradient(string name, View to) {
    using (Turn.Of(Safe, "Trainer.Gradient"))
      using (Pins pins = Pins.Borrow(to, "to")) native.gradient(Given(name, "name"), pins.First);
  }

  /// <summary>The same into a span, row by row.</summary>
  public unsafe void Gradient(string name, Span<float> to) {
    fixed (float* first = &MemoryMarshal.GetReference(to)) Gradient(name, View.At((IntPtr)first, DType.F32, ParameterInfo.Named(parameters, name).DimsOf(to.Length)));
  }

  /// <summary>The same into an array with as many elements, row by row.</summary>
  public void Gradient(string name, float[] to) { Gradient(name, Given(to, "to").AsSpan()); }

  /// <summary>The same into a new array.</summary>
  public float[] Gradient(string name) { return Made(name, Gradient); }

  /// <summary><see cref="Gradient(string, View)"/>, called by all ranks with the same name.</summary>
  [OfC("st_trainer_gradient_collective")]
  public void GradientCollective(string name, View to) {
    using (Turn.Of(Safe, "Trainer.GradientCollective"))
      using (Pins pins = Pins.Borrow(to, "to")) native.gradient_collective(Given(name, "name"), pins.First);
  }

  /// <summary>The same into a new array.</summary>
  public float[] GradientCollective(string name) { return Made(name, GradientCollective); }

  /// <summary>Changes a recipe key from the next step on: lr, warmup, lr_schedule or a parameter of the schedule.</summary>
  [OfC("st_trainer_set")]
  public void Set(string key, object value) {
    using (Turn.Of(Safe, "Trainer.Set")) native.set(Given(key, "key"), Json.Of(value));
  }

  /// <summary>The current value of a recipe key: a bool, a long, a double or a string; JSON text for lists and maps.</summary>
  [OfC("st_trainer_get")]
  public object Get(string key) {
    using (Turn.Of(Safe, "Trainer.Get")) return Json.Scalar(native.value(Given(key, "key")));
  }

  /// <summary>Lets the program set the learning rate: rate(k) is that of the step after k successful ones. null returns to the recipe's schedule. An
  /// exception that it throws is rethrown by the step.</summary>
  [OfC("st_trainer_set_schedule")]
  public void SetSchedule(Func<long, double> rate) {
    using (Turn.Of(Safe, "Trainer.SetSchedule")) {
      native.set_schedule(rate == null ? IntPtr.Zero : Bridge.Weak(Safe, rate));
      Safe.Replace(ref this.rate, rate);
    }
  }

  /// <summary>Ends a run after the current step. May be called from any thread.</summary>
  [OfC("st_trainer_stop")]
  public void Stop() { native.stop(); }

  /// <summary>Cancels the running call, or the next one if none is running; it throws <see cref="CancelledException"/>. May be called from any
  /// thread.</summary>
  [OfC("st_trainer_cancel")]
  public void Cancel() { native.cancel(); }

  /// <summary>A digest of all parameters and optimizer values, 32 hex digits. Two runs are equal if their digests are. If the state is sharded,
  /// this is the last <see cref="DigestCollective"/>, unless the state has changed since.</summary>
  [OfC("st_trainer_digest")]
  public string Digest() {
    using (Turn.Of(Safe, "Trainer.Digest")) return native.digest();
  }

  /// <summary><see cref="Digest"/>, called by all ranks.</summary>
  [OfC("st_trainer_digest_collective")]
  public string DigestCollective() {
    using (Turn.Of(Safe, "Trainer.DigestCollective")) return native.digest_collective();
  }

  /// <summary>The cost of a step as JSON: memory by role, bytes sent, collectives.</summary>
  [OfC("st_trainer_plan")]
  public string Plan() {
    using (Turn.Of(Safe, "Trainer.Plan")) return native.plan();
  }

  /// <summary>Readable text: the passes with their times, the program, and memory by role.</summary>
  [OfC("st_trainer_explain")]
  public string Explain() {
    using (Turn.Of(Safe, "Trainer.Explain")) return native.explain();
  }

  /// <summary>
  /// Where the time of the last steps went, as JSON, per rank: computing, exchange and its hidden share; also the straggler score. With
  /// pipeline stages, a rank also has its stage, the share of the time in which it waited ("bubble") and its "actions": the forward or
  /// backward of each micro-batch, with its begin, end and waits.
  /// </summary>
  [OfC("st_trainer_timeline")]
  public string Timeline() {
    using (Turn.Of(Safe, "Trainer.Timeline")) return native.timeline();
  }

  /// <summary>The predicted time of a step as JSON, and how it differs from the last one. machine is a calibrated one, as JSON text or an object;
  /// null is this one, whose rates are from a table of processors.</summary>
  [OfC("st_trainer_forecast")]
  public string Forecast(object machine = null) {
    using (Turn.Of(Safe, "Trainer.Forecast")) return native.forecast(Json.OfOptions(machine));
  }

  /// <summary>Writes one JSON object per step to the file, from the next step on.</summary>
  [OfC("st_trainer_log")]
  public void Log(string path) { native.log(Given(path, "path")); }

  /// <summary>Writes the log's last line.</summary>
  [OfC("st_trainer_log_end")]
  public void LogEnd(double validationLoss = double.NaN) { native.log_end(validationLoss); }

  /// <summary>Writes an HTML page about the run so far. facts are strings and numbers to show on the page, as JSON text, a dictionary or an anonymous
  /// object.</summary>
  [OfC("st_trainer_write_report")]
  public void WriteReport(string path, object facts = null) { native.write_report(Given(path, "path"), Json.OfOptions(facts)); }

  /// <summary>Saves the whole state of the run. Returns when it is on the disk. metadata has texts and numbers of the program, as JSON text, a
  /// dictionary or an anonymous object.</summary>
  [OfC("st_trainer_save")]
  public void Save(Checkpoint checkpoint, object metadata = null) { native.save(Given(checkpoint, "checkpoint").native, Json.OfOptions(metadata)); }

  /// <summary><see cref="Save"/>, called by all ranks, which write one checkpoint: rank 0 with its checkpoint, the others with <see
  /// cref="CheckpointOptions.ReadOnly"/> ones of the same folder.</summary>
  [OfC("st_trainer_save_collective")]
  public void SaveCollective(Checkpoint checkpoint, object metadata = null) {
    native.save_collective(Given(checkpoint, "checkpoint").native, Json.OfOptions(metadata));
  }

  /// <summary><see cref="BeginSave"/>, called by all ranks as <see cref="SaveCollective"/> is.</summary>
  public Pending BeginSaveCollective(Checkpoint checkpoint, object metadata = null) {
    return new Pending(native.save_async_collective(Given(checkpoint, "checkpoint").native, Json.OfOptions(metadata)), Safe);
  }

  /// <summary>Copies the state and returns; the files are written while training continues. The <see cref="Pending"/> reports errors.</summary>
  public Pending BeginSave(Checkpoint checkpoint, object metadata = null) {
    return new Pending(native.save_async(Given(checkpoint, "checkpoint").native, Json.OfOptions(metadata)), Safe);
  }

  /// <summary>The same as a task. The state has been copied when this returns.</summary>
  public Task SaveAsync(Checkpoint checkpoint, object metadata = null) { return BeginSave(checkpoint, metadata).AsTask(); }

  /// <summary>Saves in the background from now on: after each step that is a multiple of <paramref name="steps"/> (0 for none), and whenever
  /// <paramref name="time"/> has passed since the last save began (null for never). A later step's report has the error of a failed save. A null
  /// checkpoint ends this.</summary>
  [OfC("st_trainer_save_every")]
  public void SaveEvery(Checkpoint checkpoint, long steps = 0, TimeSpan? time = null) {
    if (checkpoint == null) native.save_no_more();
    else native.save_every(checkpoint.native, steps, time?.TotalMinutes ?? 0);
  }

  /// <summary><see cref="SaveEvery"/>, called by all ranks with the same numbers. They save together, as by <see cref="SaveCollective"/>.</summary>
  [OfC("st_trainer_save_every_collective")]
  public void SaveEveryCollective(Checkpoint checkpoint, long steps = 0, TimeSpan? time = null) {
    if (checkpoint == null) native.save_no_more_collective();
    else native.save_every_collective(checkpoint.native, steps, time?.TotalMinutes ?? 0);
  }

  /// <summary>Continues from a checkpoint (a null name: the newest valid one). The results are bitwise equal to those of an uninterrupted run.
  /// Throws NotFoundException only if there is no checkpoint, and InvalidArgumentException if it is of another model or run. After an error
  /// the trainer is unchanged.</summary>
  [OfC("st_trainer_resume")]
  public LoadReport Resume(Checkpoint checkpoint, string name = null, LoadOptions options = null) {
    Given(checkpoint, "checkpoint");
    LoadOptions.Raw raw = LoadOptions.Of(options);
    using (Turn.Of(Safe, "Trainer.Resume")) return new LoadReport(native.resume_from(checkpoint.native, name ?? "", raw.Partial, raw.From, raw.Into, raw.Names));
  }

  /// <summary>Consumes a cancel that no call has met: without a forward, apply does nothing else.</summary>
  private void ForgetCancel() {
    try { native.apply(); } catch (ScaleTrainException) {}
  }

  /// <summary>Refuses an empty batch, which the library would take for null.</summary>
  private static Batch Filled(Batch arrays, string name, string other) {
    if (arrays.Count == 0) throw new InvalidArgumentException(name + " has no arrays; pass null for " + other);
    return arrays;
  }

  private StepReport Told(StepReport report) {
    Stepped?.Invoke(report);
    return report;
  }

  private float[] Made(string name, Action<string, View> copy) {
    ParameterInfo info = ParameterInfo.Named(parameters, name);
    var made = new float[info.Size];
    copy(name, View.Of(made).Reshape(info.Dims));
    return made;
  }
}

}
