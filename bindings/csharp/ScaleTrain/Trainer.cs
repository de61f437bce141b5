using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace ScaleTrain {

/// <summary>Trains a model as a recipe says, one optimizer step at a time, planned whole beforehand. With data, steps draw from it; without, each step
/// is given its batch.</summary>
public sealed class Trainer : Handle {
  private readonly Native.Trainer native;
  private readonly IReadOnlyList<ParameterInfo> parameters;  // its own: the model may be disposed of first
  private object rate;
  private readonly LastingPins forwarded, sliced;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>data null: each step is given its batch. ranks: of whom it is one: each rank makes a trainer of the same model, recipe and data and makes the
  /// same steps, on its own share of the data, or of its own rows. Losses and states are those of one rank. Ranks that differ get a
  /// <see cref="RankFailedException"/>, all the same one.</summary>
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

  /// <summary>After each step, in the thread that made it. What a listener throws arrives there.</summary>
  public event Action<StepReport> Stepped;

  /// <summary>One optimizer step on the batch: arrays by the names of the model's inputs, whose first dimension is the rows. null: on the data's next
  /// rows. When it throws, the state is that of the last whole step.</summary>
  [OfC("st_trainer_step")]
  public StepReport Step(Batch batch = null) {
    using (Turn.Of(Safe, "Trainer.Step")) {
      if (batch == null) return Told(StepReport.Of(native.step(IntPtr.Zero)));
      using (Pins pins = Pins.Borrow(Filled(batch, "batch", "the data's next rows"))) return Told(StepReport.Of(native.step(pins.All)));
    }
  }

  /// <summary>Steps until <paramref name="steps"/> in all are done, or <see cref="Stop"/> is called.</summary>
  public void Run(long steps) { Run(steps, (Func<StepReport, bool>)null); }

  /// <summary>The same, or until <paramref name="onStep"/> gives false. It sees each step, and may make every call but Run; what it throws ends the run
  /// and arrives here.</summary>
  [OfC("st_trainer_run")]
  public void Run(long steps, Func<StepReport, bool> onStep) {
    Func<StepReport, bool> sees = onStep;
    if (Stepped != null) sees = report => {
      Told(report);
      return onStep == null || onStep(report);
    };
    using (Turn.Of(Safe, "Trainer.Run")) native.run(steps, Bridge.Strong(Safe, sees));
  }

  /// <summary>The same, reporting each step.</summary>
  public void Run(long steps, IProgress<StepReport> progress) {
    Given(progress, "progress");
    Run(steps, report => {
      progress.Report(report);
      return true;
    });
  }

  /// <summary><see cref="Step"/> on another thread. The token cancels it; arrays stay as they are until the task is done.</summary>
  public Task<StepReport> StepAsync(Batch batch = null, CancellationToken token = default(CancellationToken)) {
    return Task.Run(() => new CancellableCall(token, native.cancel, ForgetCancel).Do(() => Step(batch)), token);
  }

  /// <summary><see cref="Run(long)"/> on a thread of its own, reporting each step. The token ends it within a step's next instruction, and the state is
  /// that of the last whole step.</summary>
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

  /// <summary>Works on the step for about so long; its report when it is whole, else null. Call again with the same batch until then.</summary>
  [OfC("st_trainer_advance")]
  public StepReport? Advance(TimeSpan budget, Batch batch = null) {
    long nanoseconds = Math.Min(Math.Max(0, budget.Ticks), long.MaxValue / 100) * 100;
    using (Turn.Of(Safe, "Trainer.Advance")) {
      Record told = batch == null ? native.work(IntPtr.Zero, nanoseconds) : sliced.For(Filled(batch, "batch", "the data's next rows"), arrays => native.work(arrays, nanoseconds));
      if (told.IsNone) return null;
      sliced.End();
      return Told(StepReport.Of(told));
    }
  }

  /// <summary>The first part of a step whose loss the program computes: the model's outputs by name, copied into arrays of their dtype.
  /// <see cref="Backward"/> and <see cref="Apply"/> follow.</summary>
  [OfC("st_trainer_forward")]
  public Batch Forward(Batch batch) {
    Given(batch, "batch");
    using (Turn.Of(Safe, "Trainer.Forward")) {
      Record told = forwarded.For(batch, native.forward);
      forwarded.EndAllButLast();
      var outputs = new Batch();
      for (long left = told.Integer(); left > 0; --left) {
        string name = told.Text();
        DType dtype = NativeArrays.Next(ref told, out long[] dims, out long bytes, out IntPtr address);
        outputs.Add(name, NativeArrays.Copy(dtype, dims, address));
      }
      return outputs;
    }
  }

  /// <summary>Gradients of the loss by outputs; null: of the graph's own loss.</summary>
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

  /// <summary>Ends the step that <see cref="Forward"/> began.</summary>
  [OfC("st_trainer_apply")]
  public StepReport Apply() {
    using (Turn.Of(Safe, "Trainer.Apply")) return Told(StepReport.Of(native.apply()));
  }

  /// <summary>The loss and metrics over all rows, dropout off.</summary>
  [OfC("st_trainer_evaluate")]
  public Evaluation Evaluate(Data data) {
    using (Turn.Of(Safe, "Trainer.Evaluate")) return new Evaluation(native.evaluate(Given(data, "data").native));
  }

  /// <summary><see cref="Evaluate"/> with the moving averages (the recipe's ema_decay) in the weights' place.</summary>
  [OfC("st_trainer_evaluate_average")]
  public Evaluation EvaluateAverage(Data data) {
    using (Turn.Of(Safe, "Trainer.EvaluateAverage")) return new Evaluation(native.evaluate_average(Given(data, "data").native));
  }

  /// <summary>A parameter's moving average, copied into an array of its dims.</summary>
  [OfC("st_trainer_average")]
  public void Average(string name, View to) {
    using (Turn.Of(Safe, "Trainer.Average"))
      using (Pins pins = Pins.Borrow(to, "to")) native.average(Given(name, "name"), pins.First);
  }

  /// <summary>The same into a new array.</summary>
  public float[] Average(string name) { return Made(name, Average); }

  /// <summary>Makes the averages the model's weights.</summary>
  [OfC("st_trainer_use_average")]
  public void UseAverage() {
    using (Turn.Of(Safe, "Trainer.UseAverage")) native.use_average();
  }

  /// <summary>A parameter's gradient of the last step, before clipping, copied into a float array of its dims.</summary>
  [OfC("st_trainer_gradient")]
  public void Gradient(string name, View to) {
    using (Turn.Of(Safe, "Trainer.Gradient"))
      using (Pins pins = Pins.Borrow(to, "to")) native.gradient(Given(name, "name"), pins.First);
  }

  /// <summary>The same into a span.</summary>
  public unsafe void Gradient(string name, Span<float> to) {
    fixed (float* first = &MemoryMarshal.GetReference(to)) Gradient(name, View.At((IntPtr)first, DType.F32, ParameterInfo.Named(parameters, name).DimsOf(to.Length)));
  }

  /// <summary>The same into an array of as many elements, row by row.</summary>
  public void Gradient(string name, float[] to) { Gradient(name, Given(to, "to").AsSpan()); }

  /// <summary>The same into a new array.</summary>
  public float[] Gradient(string name) { return Made(name, Gradient); }

  /// <summary>Changes a key of the recipe from the next step on: lr, warmup, lr_schedule and what it is made from.</summary>
  [OfC("st_trainer_set")]
  public void Set(string key, object value) {
    using (Turn.Of(Safe, "Trainer.Set")) native.set(Given(key, "key"), Json.Of(value));
  }

  /// <summary>A key of the recipe as it is now: a bool, a long, a double or a text; JSON text for lists and maps.</summary>
  [OfC("st_trainer_get")]
  public object Get(string key) {
    using (Turn.Of(Safe, "Trainer.Get")) return Json.Scalar(native.value(Given(key, "key")));
  }

  /// <summary>The learning rate by the program: that of the step after k successful ones. null: the recipe's again. What it throws arrives at the
  /// step.</summary>
  [OfC("st_trainer_set_schedule")]
  public void SetSchedule(Func<long, double> rate) {
    using (Turn.Of(Safe, "Trainer.SetSchedule")) {
      native.set_schedule(rate == null ? IntPtr.Zero : Bridge.Weak(Safe, rate));
      Safe.Replace(ref this.rate, rate);
    }
  }

  /// <summary>Ends a run after the running step; from any thread.</summary>
  [OfC("st_trainer_stop")]
  public void Stop() { native.stop(); }

  /// <summary>Ends the running call, which throws <see cref="CancelledException"/>, or the next one when none is running; from any thread.</summary>
  [OfC("st_trainer_cancel")]
  public void Cancel() { native.cancel(); }

  /// <summary>32 hex digits over every parameter and optimizer value: two runs are equal when it is. Of ranks that have pieces of the state all
  /// call.</summary>
  [OfC("st_trainer_digest")]
  public string Digest() {
    using (Turn.Of(Safe, "Trainer.Digest")) return native.digest();
  }

  /// <summary>JSON: what a step takes, memory by role, and what goes over the wire.</summary>
  [OfC("st_trainer_plan")]
  public string Plan() {
    using (Turn.Of(Safe, "Trainer.Plan")) return native.plan();
  }

  /// <summary>Passes with their times, the program, memory by role: for people.</summary>
  [OfC("st_trainer_explain")]
  public string Explain() {
    using (Turn.Of(Safe, "Trainer.Explain")) return native.explain();
  }

  /// <summary>JSON: where the time of the last steps went, by rank: computing, exchange, its hidden share, the straggler score.</summary>
  [OfC("st_trainer_timeline")]
  public string Timeline() {
    using (Turn.Of(Safe, "Trainer.Timeline")) return native.timeline();
  }

  /// <summary>From the next step on, one JSON object a step goes to the file.</summary>
  [OfC("st_trainer_log")]
  public void Log(string path) { native.log(Given(path, "path")); }

  /// <summary>Writes the log's last line.</summary>
  [OfC("st_trainer_log_end")]
  public void LogEnd(double validationLoss = double.NaN) { native.log_end(validationLoss); }

  /// <summary>One HTML page about the run so far. facts: texts and numbers shown as they are; JSON text, a dictionary or an anonymous object.</summary>
  [OfC("st_trainer_write_report")]
  public void WriteReport(string path, object facts = null) { native.write_report(Given(path, "path"), Json.OfOptions(facts)); }

  /// <summary>All that this run is; returns when it is on the disk. metadata: texts and numbers of the program's own; JSON text, a dictionary or an anonymous
  /// object. Ranks of a communicator that have pieces of the state (zero 1 to 3) all save and resume together: rank 0 by its checkpoint, the others by
  /// <see cref="CheckpointOptions.ReadOnly"/> ones of that folder.</summary>
  [OfC("st_trainer_save")]
  public void Save(Checkpoint checkpoint, object metadata = null) { native.save(Given(checkpoint, "checkpoint").native, Json.OfOptions(metadata)); }

  /// <summary>Copies the state and returns; the files are written while training goes on. An error is the pending one's.</summary>
  public Pending BeginSave(Checkpoint checkpoint, object metadata = null) {
    return new Pending(native.save_async(Given(checkpoint, "checkpoint").native, Json.OfOptions(metadata)), Safe);
  }

  /// <summary>The same as a task: the state is copied when this returns.</summary>
  public Task SaveAsync(Checkpoint checkpoint, object metadata = null) { return BeginSave(checkpoint, metadata).AsTask(); }

  /// <summary>From now on saves in the background after each step that is a multiple of <paramref name="steps"/> (0: none), and so long after the last save
  /// began (null: never). Errors are told in the next step's report. checkpoint null: no more.</summary>
  [OfC("st_trainer_save_every")]
  public void SaveEvery(Checkpoint checkpoint, long steps = 0, TimeSpan? time = null) {
    if (checkpoint == null) native.save_no_more();
    else native.save_every(checkpoint.native, steps, time?.TotalMinutes ?? 0);
  }

  /// <summary>Goes on from a checkpoint (name null: the newest that is whole), bit by bit as the run that was not interrupted. After an error the trainer is
  /// what it was.</summary>
  [OfC("st_trainer_resume")]
  public LoadReport Resume(Checkpoint checkpoint, string name = null, LoadOptions options = null) {
    Given(checkpoint, "checkpoint");
    LoadOptions.Raw raw = LoadOptions.Of(options);
    using (Turn.Of(Safe, "Trainer.Resume")) return new LoadReport(native.resume_from(checkpoint.native, name ?? "", raw.Partial, raw.From, raw.Into, raw.Names));
  }

  /// <summary>Uses up a cancel that no call has met: without a forward, that is all that apply does.</summary>
  private void ForgetCancel() {
    try { native.apply(); } catch (ScaleTrainException) {}
  }

  /// <summary>For the library no arrays are the same as null.</summary>
  private static Batch Filled(Batch arrays, string name, string other) {
    if (arrays.Count == 0) throw new InvalidArgumentException(name + " holds no array; null asks for " + other);
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
