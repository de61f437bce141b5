using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>A call of a program's stage in a <see cref="Pipeline"/>. The arrays are the pipeline's and valid during the call. Their elements stay from
/// the forward of a micro-batch to its backwardWeight, so later calls get them again. An array is null where there is nothing: the first part
/// has no input, the last one no output, and forward no gradients.</summary>
public sealed class StageWork {
  /// <summary>The part of the model, from 0.</summary>
  public int Part { get; }
  /// <summary>The chunk of this rank, from 0.</summary>
  public int Chunk { get; }
  /// <summary>The micro-batch of this run, from 0.</summary>
  public int MicroBatch { get; }
  /// <summary>The part's input, read-only.</summary>
  public BorrowedArray Input { get; }
  /// <summary>The part's output. Forward writes all of it; later it is read-only.</summary>
  public BorrowedArray Output { get; }
  /// <summary>The gradient of the output, read-only.</summary>
  public BorrowedArray OutputGradient { get; }
  /// <summary>The gradient of the input. BackwardInput writes all of it; later it is read-only.</summary>
  public BorrowedArray InputGradient { get; }

  internal unsafe StageWork(int part, int chunk, int microBatch, RawView* views) {
    Part = part;
    Chunk = chunk;
    MicroBatch = microBatch;
    Input = Of(views);
    Output = Of(views + 1);
    OutputGradient = Of(views + 2);
    InputGradient = Of(views + 3);
  }

  private static unsafe BorrowedArray Of(RawView* view) { return view->Data == IntPtr.Zero ? null : new BorrowedArray(view, view->Writable == 0); }

  internal void End() { BorrowedArray.End(new[] { Input, Output, OutputGradient, InputGradient }); }
}

/// <summary>A pipeline of the program's own stages. The program computes; the library runs a schedule and sends activations and gradients between the
/// ranks. The model is cut into parts, one after the other; rank s is stage s.</summary>
/// <remarks>Schedules: "gpipe", "1f1b" and "zb-h1", where stage s has part s; "interleaved" with 2 or more parts a stage, where chunk c of stage s is
/// part c * stages + s; "zb-v" with 2 parts a stage, where chunk 0 of stage s is part s and chunk 1 part 2 * stages - 1 - s; or a table, a line
/// for each stage with cells such as 0F0,0F1,0B0,0B1: part, F (forward), B (backward), or I (gradient of the input) and later W (of the
/// weights), and micro-batch. Sums of gradients have the same bits in every schedule.</remarks>
public sealed class Pipeline : Handle {
  private readonly Native.Pipeline native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>All ranks must create it together. inputs and outputs have the types of this rank's chunks, without batch dims; those of the model's
  /// first input and last output are not read. The functions are called on the thread that is in <see cref="Run"/>, where calls on the pipeline
  /// and its communicator throw <see cref="BusyException"/>.</summary>
  /// <param name="communicator">Its ranks are the stages.</param>
  /// <param name="schedule">A name or a table.</param>
  /// <param name="inputs">By chunk.</param>
  /// <param name="outputs">By chunk.</param>
  /// <param name="forward">Computes the output from the input. The last part also computes its loss, which is the program's.</param>
  /// <param name="backwardInput">Computes the input gradient from the output gradient. The last part begins with its loss.</param>
  /// <param name="backwardWeight">Adds to the gradients of the part's weights; null if backwardInput does that. Only where the two are separate do
  /// "zb-h1" and "zb-v" have a smaller bubble.</param>
  [OfC("st_pipeline_create")]
  public Pipeline(Communicator communicator, string schedule, IReadOnlyList<OpType> inputs, IReadOnlyList<OpType> outputs, Action<StageWork> forward,
                  Action<StageWork> backwardInput, Action<StageWork> backwardWeight = null) {
    var functions = new[] { Given(forward, "forward"), Given(backwardInput, "backwardInput"), backwardWeight };
    native = new Native.Pipeline(Given(communicator, "communicator").native, Given(schedule, "schedule"), Written(Given(inputs, "inputs")),
                                 Written(Given(outputs, "outputs")), Bridge.Weak(communicator.Safe, functions));
    Safe.Keep(functions);
    Safe.KeepWhat(communicator.Safe);
  }

  private static byte[] Written(IReadOnlyList<OpType> types) {
    var all = new Writing();
    return all.AddAll(types, type => all.Add((long)type.DType).Add(type.Dims ?? new long[0])).Done();
  }

  /// <summary>Calls the functions for so many micro-batches, 1 to 1048576, the same number on all ranks. Returns when all ranks' work is done.
  /// An exception of a function ends the run and is rethrown here. If a stage fails or is gone, the other ranks throw
  /// <see cref="RankFailedException"/>, and the communicator's group is over.</summary>
  [OfC("st_pipeline_run")]
  public void Run(int microBatches) { native.run(microBatches); }

  /// <summary>Describes a run of so many micro-batches as JSON: stages, chunks, micro_batches, in_flight (by stage, chunks between their forward and the
  /// end of their backward, at most), buffer_bytes, send_bytes, bubble (the share of the time in which a stage waits) and table.</summary>
  [OfC("st_pipeline_schedule")]
  public string Schedule(int microBatches) { return native.schedule(microBatches); }
}

/// <summary>Calls of a pipeline's functions by native code.</summary>
internal static unsafe class Stages {
  [MonoPInvokeCallback(typeof(Bridge.StageCall))]
  internal static IntPtr Work(IntPtr user, int phase, int part, int chunk, int microBatch, RawView* views) {
    StageWork work = null;
    try {
      work = new StageWork(part, chunk, microBatch, views);
      Action<StageWork> function = Bridge.Target<Action<StageWork>[]>(user)[phase];
      if (function != null) function(work);
      return IntPtr.Zero;
    } catch (Exception exception) { return Bridge.Thrown(exception); } finally { work?.End(); }
  }
}

}
