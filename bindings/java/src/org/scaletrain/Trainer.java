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
 * Trains a model as a recipe says, one optimizer step at a time. With data, steps draw from it; without, each step is given its batch. When
 * a call throws, the state is that of the last whole step.
 *
 * <p>One call at a time; {@link #stop} and {@link #cancel} are for any thread. {@code onStep} may make every call but {@code run} and
 * {@link #close}.
 */
@SuppressWarnings("try")  // a turn is only held
public final class Trainer extends Handle {
  private static final int RATE = 2;
  private static final double NANOSECONDS_A_MINUTE = 60e9;

  private final org.scaletrain.internal.Trainer raw;
  private final Model model;
  private final Turns turns = new Turns();  // forward() copies what the trainer's next call changes
  private final Object[] keeps;
  private final LastingBatch forwarded = new LastingBatch();  // until backward has read it
  private final LastingBatch sliced = new LastingBatch();  // until the step is whole

  /** Each step is given its batch. */
  public Trainer(Model model, Recipe recipe) {
    this(model, recipe, null);
  }

  /** Steps draw from {@code data}, unless it is null. */
  public Trainer(Model model, Recipe recipe, Data data) {
    this(model, recipe, data, null);
  }

  /**
   * One rank of {@code ranks}, unless that is null: each rank makes a trainer of the same model, recipe and data and makes the same steps, on
   * its own share of the data, or, where that is null, of its own rows. Losses and states are those of one rank. Ranks that differ get a
   * {@link RankFailed}, all the same one.
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

  /** One optimizer step on a batch; null: on the data's next rows. */
  @OfC("st_trainer_step")
  public StepReport step(Batch batch) {
    try (Turns.Turn turn = turns.take("Trainer.step")) {
      return (StepReport) raw.step(Batch.pairsOf(batch));
    }
  }

  /** {@link #step(Batch)} in a thread of its own; cancelling the future cancels the step. */
  public CompletableFuture<StepReport> stepAsync(Batch batch) {
    return Call.start(() -> step(batch), raw::cancel);
  }

  /** Steps until {@code steps} in all are done, or {@link #stop} is called. */
  public void run(long steps) {
    runWhile(steps, null);
  }

  /** The same; {@code onStep} sees each step. What it throws ends the run and arrives here. */
  public void run(long steps, Consumer<StepReport> onStep) {
    runWhile(steps, onStep == null ? null : report -> {
      onStep.accept(report);
      return true;
    });
  }

  /** Steps until {@code steps} in all are done, {@link #stop} is called, or {@code onStep} gives false. What it throws arrives here. */
  @OfC("st_trainer_run")
  public void runWhile(long steps, Predicate<StepReport> onStep) {
    try (Turns.Turn turn = turns.take("Trainer.run")) {
      raw.run(steps, turns.inside(onStep));
    }
  }

  /** {@link #run(long, Consumer)} in a thread of its own, where {@code onStep} is called too; cancelling the future cancels the run. */
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

  /** Works on the step for about so long; its report when it is whole. Call again with the same batch until then. */
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
   * The first part of a step whose loss the program computes: the model's outputs, copied into Java's own arrays. {@link #backward} and
   * {@link #apply} follow.
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

  /** Gradients of the loss by outputs; null: of the graph's own loss. */
  @OfC("st_trainer_backward")
  public void backward(Batch outputGradients) {
    try (Turns.Turn turn = turns.take("Trainer.backward")) {
      raw.backward(Batch.pairsOf(outputGradients));
      forwarded.end();
    }
  }

  /** Ends the step that {@link #forward} began. */
  @OfC("st_trainer_apply")
  public StepReport apply() {
    try (Turns.Turn turn = turns.take("Trainer.apply")) {
      return (StepReport) raw.apply();
    }
  }

  /** The loss and metrics over all rows, dropout off. */
  @OfC("st_trainer_evaluate")
  public Evaluation evaluate(Data data) {
    given(data, "Trainer.evaluate");
    try (Turns.Turn turn = turns.take("Trainer.evaluate")) {
      return (Evaluation) raw.evaluate(data.raw);
    }
  }

  /** {@link #evaluate} with the moving averages (the recipe's {@code ema_decay}) in the weights' place. */
  @OfC("st_trainer_evaluate_average")
  public Evaluation evaluateAverage(Data data) {
    given(data, "Trainer.evaluateAverage");
    try (Turns.Turn turn = turns.take("Trainer.evaluateAverage")) {
      return (Evaluation) raw.evaluate_average(data.raw);
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

  /** Makes the averages the model's weights. */
  @OfC("st_trainer_use_average")
  public void useAverage() {
    raw.use_average();
  }

  /** A parameter's gradient of the last step, before clipping, copied into a new {@code float[]}. */
  public Array gradient(String name) {
    Array to = floatsOf(name);
    gradient(name, to);
    return to;
  }

  /** A parameter's gradient of the last step, before clipping, copied into {@code to}; f32. */
  @OfC("st_trainer_gradient")
  public void gradient(String name, Array to) {
    raw.gradient(name, to);
  }

  /** Changes a key of the recipe from the next step on: lr, warmup, lr_schedule and what it is made from. */
  @OfC("st_trainer_set")
  public void set(String key, Object value) {
    raw.set(key, Json.text(value));
  }

  /** A key of the recipe as it is now: Long, Double, String, Boolean or a list. */
  @OfC("st_trainer_get")
  public Object get(String key) {
    return Json.parse(raw.value(key));
  }

  /**
   * The learning rate by the program: {@code rate(k)} is that of the step after k successful ones; null: the recipe's again. What it throws
   * arrives at the step.
   */
  @OfC("st_trainer_set_schedule")
  public synchronized void setSchedule(LongToDoubleFunction rate) {
    raw.set_schedule(rate);
    keeps[RATE] = rate;
    raw.keeps = keeps;
  }

  /** Ends a run after the running step; from any thread. */
  @OfC("st_trainer_stop")
  public void stop() {
    raw.stop();
  }

  /** Ends the running call, which throws {@link Cancelled}; from any thread. */
  @OfC("st_trainer_cancel")
  public void cancel() {
    raw.cancel();
  }

  /**
   * 32 hex digits over every parameter and optimizer value: two runs are equal when it is. Of ranks that have pieces of the state all call.
   */
  @OfC("st_trainer_digest")
  public String digest() {
    return raw.digest();
  }

  /** What a step takes, memory by role, as JSON. */
  @OfC("st_trainer_plan")
  public String plan() {
    return raw.plan();
  }

  /** Passes with their times, the program, memory by role: for people. */
  @OfC("st_trainer_explain")
  public String explain() {
    return raw.explain();
  }

  /** Where the time of the last steps went, by rank, as JSON: computing, exchange, its hidden share, the straggler score. */
  @OfC("st_trainer_timeline")
  public String timeline() {
    return raw.timeline();
  }

  /** From the next step on, one JSON object a step goes to {@code path}. */
  @OfC("st_trainer_log")
  public void log(Path path) {
    raw.log(path.toString());
  }

  /** Writes the log's last line. */
  @OfC("st_trainer_log_end")
  public void logEnd(double validationLoss) {
    raw.log_end(validationLoss);
  }

  /** One HTML page about the run so far. facts: texts and numbers shown as they are. */
  @OfC("st_trainer_write_report")
  public void writeReport(Path path, Map<String, ?> facts) {
    raw.write_report(path.toString(), Json.options(facts));
  }

  /**
   * All that this run is; returns when it is on the disk. Ranks of a communicator that have pieces of the state (zero 1 to 3) all save and
   * resume together: rank 0 by its checkpoint, the others by {@link CheckpointOptions#readOnly} ones of that folder.
   */
  public void save(Checkpoint checkpoint) {
    save(checkpoint, Map.of());
  }

  /** The same, with texts and numbers of the program's own. */
  @OfC("st_trainer_save")
  public void save(Checkpoint checkpoint, Map<String, ?> metadata) {
    raw.save(given(checkpoint, "Trainer.save").raw, Json.options(metadata));
  }

  /** Copies the state and returns; the files are written while training goes on. An error is the pending one's. */
  public Pending beginSave(Checkpoint checkpoint, Map<String, ?> metadata) {
    return new Pending(raw.save_async(given(checkpoint, "Trainer.beginSave").raw, Json.options(metadata)), raw);
  }

  /**
   * From now on saves in the background after each step that is a multiple of {@code steps} (0: none), and so long after the last save
   * began (zero: never). Errors are told in the next step's report. checkpoint null: no more.
   */
  @OfC("st_trainer_save_every")
  public void saveEvery(Checkpoint checkpoint, long steps, Duration time) {
    if (checkpoint == null) {
      raw.save_no_more();
    } else {
      raw.save_every(checkpoint.raw, steps, Call.nanoseconds(given(time, "Trainer.saveEvery: time")) / NANOSECONDS_A_MINUTE);
    }
  }

  /** Goes on from the newest checkpoint that is whole, bit by bit as the run that was not interrupted. */
  public LoadReport resume(Checkpoint checkpoint) {
    return resume(checkpoint, null, new ReadOptions());
  }

  /** The same from the checkpoint of a name; null: the newest that is whole. After an error the trainer is what it was. */
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
