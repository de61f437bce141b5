package org.scaletrain;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.LongToDoubleFunction;
import java.util.function.Predicate;

/**
 * Trains a model according to a recipe, one optimizer step at a time. With data, steps read their rows from it; without, the program passes a
 * batch to each step. If a call throws, the state is that of the last finished step.
 *
 * <p>On ranks of a {@link Communicator}, calls that read weights or state come in pairs. Without a suffix they read what this rank has, and
 * throw {@link WrongState} at once if other ranks have parts of it. Those that end in Collective are called by all ranks, in the same order,
 * and work for every recipe. All ranks make the steps, {@link #resume} and {@link #useAverage}.
 *
 * <p>One call at a time. {@link #stop} and {@link #cancel} may be called from any thread. {@code onStep} may make every call except
 * {@code run} and {@link #close}.
 */
@SuppressWarnings("try")  // the turn variables are not used
public final class Trainer extends Handle {
  private static final int RATE = 2;
  private static final double NANOSECONDS_A_MINUTE = 60e9;

  private final org.scaletrain.internal.Trainer raw;
  private final Model model;
  private final Turns turns = new Turns();  // forward() copies outputs that the trainer's next call would overwrite
  private final Object[] keeps;
  private final LastingBatch forwarded = new LastingBatch();  // kept until backward has read it
  private final LastingBatch sliced = new LastingBatch();  // kept until the step is finished

  /** A trainer whose steps take a batch from the program. */
  public Trainer(Model model, Recipe recipe) {
    this(model, recipe, null);
  }

  /** A trainer whose steps read from {@code data}. If that is null, steps take a batch. */
  public Trainer(Model model, Recipe recipe, Data data) {
    this(model, recipe, data, null);
  }

  /**
   * A trainer that is one rank of {@code ranks}, if that is not null. Each rank creates a trainer with the same model, recipe and data and
   * makes the same steps. A step reads the rank's share of the data, or, if {@code data} is null, the rows that the rank passes. Losses and
   * states equal those of a single rank. If the ranks differ, all of them throw the same {@link RankFailed}.
   */
  @OfC({"st_trainer_create", "st_trainer_create_in_group"})
  public Trainer(Model model, Recipe recipe, Data data, Communicator ranks) {
    var settings = given(recipe, "Trainer: recipe").raw;
    var of = given(model, "Trainer: model").raw;
    raw = made(of, settings, data, ranks);
    keeps = new Object[] {of, data == null ? null : data.raw, null};
    raw.keeps = keeps;
    this.model = model;
  }

  private static org.scaletrain.internal.Trainer made(org.scaletrain.internal.Model of, org.scaletrain.internal.Recipe settings, Data data,
      Communicator ranks) {
    if (ranks == null)
      return data == null ? new org.scaletrain.internal.Trainer(of, settings) : new org.scaletrain.internal.Trainer(of, settings, data.raw);
    return data == null ? new org.scaletrain.internal.Trainer(of, settings, ranks.raw)
                        : new org.scaletrain.internal.Trainer(of, settings, data.raw, ranks.raw);
  }

  /** One optimizer step on the data's next rows. */
  public StepReport step() {
    return step(null);
  }

  /** One optimizer step on a batch; null means the data's next rows. */
  @OfC("st_trainer_step")
  public StepReport step(Batch batch) {
    try (Turns.Turn turn = turns.take("Trainer.step")) {
      return (StepReport) raw.step(Batch.pairsOf(batch));
    }
  }

  /** {@link #step(Batch)} on a separate thread. Cancelling the future cancels the step. */
  public CompletableFuture<StepReport> stepAsync(Batch batch) {
    return Call.start(() -> step(batch), raw::cancel);
  }

  /** Steps until the trainer has done {@code steps} in total, or until {@link #stop} is called. */
  public void run(long steps) {
    runWhile(steps, null);
  }

  /** The same; {@code onStep} receives the report of each step. An exception that it throws ends the run and is rethrown here. */
  public void run(long steps, Consumer<StepReport> onStep) {
    runWhile(steps, onStep == null ? null : report -> {
      onStep.accept(report);
      return true;
    });
  }

  /** The same; {@code onStep} also ends the run by returning false. */
  @OfC("st_trainer_run")
  public void runWhile(long steps, Predicate<StepReport> onStep) {
    try (Turns.Turn turn = turns.take("Trainer.run")) {
      raw.run(steps, turns.inside(onStep));
    }
  }

  /** {@link #run(long, Consumer)} on a separate thread, which also calls {@code onStep}. Cancelling the future cancels the run. */
  public CompletableFuture<Void> runAsync(long steps, Consumer<StepReport> onStep) {
    AtomicBoolean cancelled = new AtomicBoolean();
    return Call.start(() -> {
      runWhile(steps, report -> {
        if (cancelled.get()) throw new CancellationException();
        if (onStep != null) onStep.accept(report);
        return true;
      });
      return null;
    }, () -> {
      cancelled.set(true);
      raw.cancel();
    });
  }

  /** Works on the step for about this long. Returns the report if the step is finished; otherwise call again with the same batch. */
  @OfC("st_trainer_advance")
  public Optional<StepReport> advance(Batch batch, Duration budget) {
    try (Turns.Turn turn = turns.take("Trainer.advance")) {
      Object[] read = sliced.of(batch);
      StepReport report = sliced.reading(() -> (StepReport) raw.work(read, Call.nanoseconds(given(budget, "Trainer.advance: budget"))));
      if (report != null) sliced.end();
      return Optional.ofNullable(report);
    }
  }

  /**
   * Begins a step whose loss the program computes. Returns the model's outputs, copied to heap arrays. {@link #backward} and {@link #apply}
   * must follow.
   */
  @OfC("st_trainer_forward")
  public Batch forward(Batch batch) {
    try (Turns.Turn turn = turns.take("Trainer.forward")) {
      Object[] read = forwarded.anew(batch);
      Object[] outputs = forwarded.reading(() -> raw.forward(read));
      forwarded.only();
      Map<String, Array> copies = new LinkedHashMap<>();
      for (int i = 0; i < outputs.length; i += 3)
        copies.put((String) outputs[i], Callbacks.copied((ArrayType) outputs[i + 1], (ByteBuffer) outputs[i + 2]));
      return Batch.of(copies);
    }
  }

  /**
   * {@link #forward} that writes outputs to {@code outputs} instead, each of an output's type and dims. On a device they may be in its memory.
   * Outputs left out are not copied.
   */
  @OfC("st_trainer_forward_into")
  public void forwardInto(Batch batch, Batch outputs) {
    try (Turns.Turn turn = turns.take("Trainer.forwardInto")) {
      Object[] written = Batch.pairsOf(given(outputs, "Trainer.forwardInto: outputs"));
      Object[] read = forwarded.anew(batch);
      forwarded.reading(() -> {
        raw.forward_into(read, written);
        return null;
      });
      forwarded.only();
    }
  }

  /** Takes the gradients of the loss by output name; null means the graph's own loss. */
  @OfC("st_trainer_backward")
  public void backward(Batch outputGradients) {
    try (Turns.Turn turn = turns.take("Trainer.backward")) {
      raw.backward(Batch.pairsOf(outputGradients));
      forwarded.end();
    }
  }

  /** Clips, updates, and ends the step that {@link #forward} began. */
  @OfC("st_trainer_apply")
  public StepReport apply() {
    try (Turns.Turn turn = turns.take("Trainer.apply")) {
      return (StepReport) raw.apply();
    }
  }

  /** The loss and metrics over all rows, with dropout off. */
  @OfC("st_trainer_evaluate")
  public Evaluation evaluate(Data data) {
    given(data, "Trainer.evaluate");
    try (Turns.Turn turn = turns.take("Trainer.evaluate")) {
      return (Evaluation) raw.evaluate(data.raw);
    }
  }

  /** {@link #evaluate}, called by all ranks with the same rows. */
  @OfC("st_trainer_evaluate_collective")
  public Evaluation evaluateCollective(Data data) {
    given(data, "Trainer.evaluateCollective");
    try (Turns.Turn turn = turns.take("Trainer.evaluateCollective")) {
      return (Evaluation) raw.evaluate_collective(data.raw);
    }
  }

  /** {@link #evaluate} with the moving averages (recipe key {@code ema_decay}) in place of the weights. */
  @OfC("st_trainer_evaluate_average")
  public Evaluation evaluateAverage(Data data) {
    given(data, "Trainer.evaluateAverage");
    try (Turns.Turn turn = turns.take("Trainer.evaluateAverage")) {
      return (Evaluation) raw.evaluate_average(data.raw);
    }
  }

  /** {@link #evaluateAverage}, called by all ranks with the same rows. */
  @OfC("st_trainer_evaluate_average_collective")
  public Evaluation evaluateAverageCollective(Data data) {
    given(data, "Trainer.evaluateAverageCollective");
    try (Turns.Turn turn = turns.take("Trainer.evaluateAverageCollective")) {
      return (Evaluation) raw.evaluate_average_collective(data.raw);
    }
  }

  /** A parameter's moving average, copied into a new {@code float[]}. */
  public Array average(String name) {
    Array to = floatsOf(name);
    average(name, to);
    return to;
  }

  /** A parameter's moving average, copied into {@code to}. */
  @OfC("st_trainer_average")
  public void average(String name, Array to) {
    raw.average(name, to);
  }

  /** {@link #average(String)}, called by all ranks with the same name. */
  public Array averageCollective(String name) {
    Array to = floatsOf(name);
    averageCollective(name, to);
    return to;
  }

  /** {@link #average(String, Array)}, called by all ranks with the same name. */
  @OfC("st_trainer_average_collective")
  public void averageCollective(String name, Array to) {
    raw.average_collective(name, to);
  }

  /** Replaces the model's weights by their moving averages. */
  @OfC("st_trainer_use_average")
  public void useAverage() {
    raw.use_average();
  }

  /** A parameter's gradient in the last step, before clipping, copied into a new {@code float[]}. */
  public Array gradient(String name) {
    Array to = floatsOf(name);
    gradient(name, to);
    return to;
  }

  /** A parameter's gradient in the last step, before clipping, copied into {@code to}, an f32 array. */
  @OfC("st_trainer_gradient")
  public void gradient(String name, Array to) {
    raw.gradient(name, to);
  }

  /** {@link #gradient(String)}, called by all ranks with the same name. */
  public Array gradientCollective(String name) {
    Array to = floatsOf(name);
    gradientCollective(name, to);
    return to;
  }

  /** {@link #gradient(String, Array)}, called by all ranks with the same name. */
  @OfC("st_trainer_gradient_collective")
  public void gradientCollective(String name, Array to) {
    raw.gradient_collective(name, to);
  }

  /** Changes a recipe key from the next step on: lr, warmup, lr_schedule or a parameter of the schedule. */
  @OfC("st_trainer_set")
  public void set(String key, Object value) {
    raw.set(key, Json.text(value));
  }

  /** The current value of a recipe key: Long, Double, String, Boolean or a list. */
  @OfC("st_trainer_get")
  public Object get(String key) {
    return Json.parse(raw.value(key));
  }

  /**
   * Lets the program set the learning rate: {@code rate(k)} is that of the step after k successful ones. null returns to the recipe's
   * schedule. An exception that {@code rate} throws is rethrown by the step.
   */
  @OfC("st_trainer_set_schedule")
  public synchronized void setSchedule(LongToDoubleFunction rate) {
    raw.set_schedule(rate);
    keeps[RATE] = rate;
    raw.keeps = keeps;
  }

  /** Ends a run after the current step. May be called from any thread. */
  @OfC("st_trainer_stop")
  public void stop() {
    raw.stop();
  }

  /** Cancels the running call, which throws {@link Cancelled}. May be called from any thread. */
  @OfC("st_trainer_cancel")
  public void cancel() {
    raw.cancel();
  }

  /**
   * A digest of all parameters and optimizer values, 32 hex digits. Two runs are equal if their digests are. If the state is sharded, this is
   * the last {@link #digestCollective}, unless the state has changed since.
   */
  @OfC("st_trainer_digest")
  public String digest() {
    return raw.digest();
  }

  /** {@link #digest}, called by all ranks. */
  @OfC("st_trainer_digest_collective")
  public String digestCollective() {
    return raw.digest_collective();
  }

  /** The cost of a step as JSON: memory by role, bytes sent, collectives. */
  @OfC("st_trainer_plan")
  public String plan() {
    return raw.plan();
  }

  /** Readable text: the passes with their times, the program, and memory by role. */
  @OfC("st_trainer_explain")
  public String explain() {
    return raw.explain();
  }

  /**
   * Where the time of the last steps went, as JSON, per rank: computing, exchange and its hidden share; also the straggler score. With
   * pipeline stages, a rank also has its stage, the share of the time in which it waited ("bubble") and its "actions": the forward or
   * backward of each micro-batch, with its begin, end and waits.
   */
  @OfC("st_trainer_timeline")
  public String timeline() {
    return raw.timeline();
  }

  /** The predicted time of a step as JSON, and how it differs from the last one. The rates are those of a table of processors. */
  public String forecast() {
    return forecast("");
  }

  /** The same with the rates of {@code machine}, the JSON of a calibrated one. */
  @OfC("st_trainer_forecast")
  public String forecast(String machine) {
    return raw.forecast(machine);
  }

  /** Writes one JSON object per step to {@code path}, from the next step on. */
  @OfC("st_trainer_log")
  public void log(Path path) {
    raw.log(path.toString());
  }

  /** Writes the log's last line. */
  @OfC("st_trainer_log_end")
  public void logEnd(double validationLoss) {
    raw.log_end(validationLoss);
  }

  /** Writes an HTML page about the run so far. {@code facts} are strings and numbers to show on the page. */
  @OfC("st_trainer_write_report")
  public void writeReport(Path path, Map<String, ?> facts) {
    raw.write_report(path.toString(), Json.options(facts));
  }

  /** Saves the whole state of the run. Returns when it is on the disk. */
  public void save(Checkpoint checkpoint) {
    save(checkpoint, Map.of());
  }

  /** The same, with metadata: texts and numbers of the program. */
  @OfC("st_trainer_save")
  public void save(Checkpoint checkpoint, Map<String, ?> metadata) {
    raw.save(given(checkpoint, "Trainer.save").raw, Json.options(metadata));
  }

  /**
   * {@link #save(Checkpoint, Map)}, called by all ranks, which write one checkpoint: rank 0 with its checkpoint, the others with {@link
   * CheckpointOptions#readOnly} ones of the same folder.
   */
  @OfC("st_trainer_save_collective")
  public void saveCollective(Checkpoint checkpoint, Map<String, ?> metadata) {
    raw.save_collective(given(checkpoint, "Trainer.saveCollective").raw, Json.options(metadata));
  }

  /** Copies the state and returns; the files are written while training continues. The {@link Pending} reports errors. */
  public Pending beginSave(Checkpoint checkpoint, Map<String, ?> metadata) {
    return new Pending(raw.save_async(given(checkpoint, "Trainer.beginSave").raw, Json.options(metadata)), raw);
  }

  /** {@link #beginSave}, called by all ranks as {@link #saveCollective} is. */
  public Pending beginSaveCollective(Checkpoint checkpoint, Map<String, ?> metadata) {
    return new Pending(raw.save_async_collective(given(checkpoint, "Trainer.beginSaveCollective").raw, Json.options(metadata)), raw);
  }

  /**
   * Saves in the background from now on: after each step that is a multiple of {@code steps} (0 for none), and whenever {@code time} has
   * passed since the last save began (zero for never). A later step's report has the error of a failed save. A null checkpoint ends this.
   */
  @OfC("st_trainer_save_every")
  public void saveEvery(Checkpoint checkpoint, long steps, Duration time) {
    if (checkpoint == null) {
      raw.save_no_more();
    } else {
      raw.save_every(checkpoint.raw, steps, Call.nanoseconds(given(time, "Trainer.saveEvery: time")) / NANOSECONDS_A_MINUTE);
    }
  }

  /** {@link #saveEvery}, called by all ranks with the same numbers. They save together, as by {@link #saveCollective}. */
  @OfC("st_trainer_save_every_collective")
  public void saveEveryCollective(Checkpoint checkpoint, long steps, Duration time) {
    if (checkpoint == null) {
      raw.save_no_more_collective();
    } else {
      double minutes = Call.nanoseconds(given(time, "Trainer.saveEveryCollective: time")) / NANOSECONDS_A_MINUTE;
      raw.save_every_collective(checkpoint.raw, steps, minutes);
    }
  }

  /**
   * Continues from the newest valid checkpoint. The results are bitwise equal to those of an uninterrupted run. Throws {@link NotFound} only
   * if there is no checkpoint, and {@link InvalidArgument} if it is of another model or run.
   */
  public LoadReport resume(Checkpoint checkpoint) {
    return resume(checkpoint, null, new ReadOptions());
  }

  /** The same from the checkpoint with this name; null means the newest valid one. After an error the trainer is unchanged. */
  @OfC("st_trainer_resume")
  public LoadReport resume(Checkpoint checkpoint, String name, ReadOptions options) {
    try (Turns.Turn turn = turns.take("Trainer.resume")) {
      return given(options, "Trainer.resume").resume(raw, given(checkpoint, "Trainer.resume").raw, name);
    }
  }

  @Override
  @OfC("st_trainer_destroy")
  public void close() {
    try (Turns.Turn turn = turns.take("Trainer.close")) {
      raw.close();
    }
  }

  private Array floatsOf(String name) {
    ArrayType type = model.type(name);
    return Array.of(new float[Math.toIntExact(type.size())], type.dims());
  }
}
