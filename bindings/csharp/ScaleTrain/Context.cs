using System;
using System.Globalization;

namespace ScaleTrain {

/// <summary>Options of a <see cref="Context"/>.</summary>
public sealed class ContextOptions {
  /// <summary>Threads of each trainer; 0 means the number of cores of this process.</summary>
  public int Threads { get; set; }
  /// <summary>"cpu"; "reference", which is slow and accumulates in double precision; NAME or NAME:INDEX of a plug-in's device.</summary>
  public string Device { get; set; } = "cpu";
  /// <summary>Limit in bytes of all buffers together; 0 means the memory of the machine.</summary>
  public long MemoryLimit { get; set; }
  /// <summary>Receives level, area and text of each log record, on any thread; null for no log. An exception that it throws does not end the running
  /// call; it is rethrown when that call has finished.</summary>
  public Action<LogLevel, string, string> Log { get; set; }
  /// <summary>Runs the library's tasks on threads of the program; null for the library's own threads.</summary>
  public ParallelFunction Parallel { get; set; }
  /// <summary>The file that caches measured tiles; "" for none; null for the one that the environment selects.</summary>
  public string TuningCache { get; set; }
  /// <summary>Models allocate their parameters on first use. A trainer in a group with zero 3, with zero 1 or 2 and 16-bit weights, or with
  /// stages, then allocates only its rank's part.</summary>
  public bool LateParameters { get; set; }
}

/// <summary>The device, threads and memory that computations use.</summary>
public sealed class Context : Handle {
  internal readonly Native.Context native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>With all defaults: all cores of this process and all memory of this machine.</summary>
  public Context() : this(new ContextOptions()) {}

  /// <summary>With these options.</summary>
  [OfC("st_context_create")]
  public Context(ContextOptions options) {
    Given(options, "options");
    Loader.Require();
    var raw = new Native.ContextOptions { threads = options.Threads, memory_limit = options.MemoryLimit, device = Given(options.Device, "Device"),
                                          late_parameters = options.LateParameters };
    Action<LogLevel, string, string> log = options.Log;
    ParallelFunction parallel = options.Parallel;
    if (log != null) raw.set_log(Bridge.Weak(raw.handle, log));
    if (parallel != null) raw.set_parallel(Bridge.Weak(raw.handle, parallel));
    if (options.TuningCache != null) raw.set_tuning_cache(options.TuningCache);
    native = new Native.Context(raw);
    raw.handle.Dispose();
    Safe.Keep(log);
    Safe.Keep(parallel);
    ProgramEnd.Watch(this);
  }

  /// <summary>Cancels the calls that are running in it; they throw <see cref="CancelledException"/>. May be called from any thread.</summary>
  [OfC("st_context_cancel")]
  public void Cancel() { native.cancel(); }

  /// <summary>Frees memory that is only cached for speed.</summary>
  [OfC("st_context_trim")]
  public void Trim() { native.trim(); }

  /// <summary>The program's stream on the context's device: a <c>cudaStream_t</c>, 1 for CUDA's default stream, -1 for none. Until it is set
  /// it is 1. CUDA's per-thread default streams are refused. Calls that take an array of the device come after what the stream has been
  /// given.</summary>
  [OfC("st_context_use_stream", "st_context_stream")]
  public long Stream {
    get { return native.stream(); }
    set { native.use_stream(value); }
  }

  /// <summary>Current and peak bytes of the context's buffers, by purpose.</summary>
  [OfC("st_context_memory", "st_memory_role_name")]
  public MemoryStats Memory() { return new MemoryStats(native.memory()); }

  /// <summary>Resets every peak of <see cref="Memory"/> to the current value.</summary>
  [OfC("st_context_reset_peak")]
  public void ResetPeak() { native.reset_peak(); }

  /// <summary>Measures how long the instructions of training steps take on this machine, by training small built-in models. Returns JSON. Other work on
  /// the machine makes the rates too low.</summary>
  /// <param name="seconds">Time to measure, 0 to 600; the call takes a few more.</param>
  /// <param name="quick">Only the smallest models, on one rank, for which 5 seconds are enough; this predicts large models badly.</param>
  [OfC("st_machine_calibrate")]
  public string Calibrate(double seconds = 40, bool quick = false) {
    return native.calibrate("{\"seconds\": " + seconds.ToString("R", CultureInfo.InvariantCulture) + ", \"quick\": " + (quick ? "true" : "false") + "}");
  }

  /// <summary>Adds the op <paramref name="name"/> to the graphs of this context: <c>graph.Op(name, x)</c>. It has a gradient if it is an
  /// <see cref="IDifferentiableHostOp"/>.</summary>
  [OfC("st_op_register")]
  public void RegisterOp(string name, IHostOp op, int outputs = 1) {
    Safe.Keep(Given(op, "op"));
    native.register_op_of(Given(name, "name"), Bridge.Weak(Safe, op), outputs, op is IDifferentiableHostOp);
  }

  /// <summary>Returns the norm of all gradients together. If it is above <paramref name="max"/>, the gradients are scaled down to that norm in
  /// place. If max is 0 or the norm is not finite, they are not changed.</summary>
  [OfC("st_clip_norm")]
  public double ClipNorm(double max, params View[] gradients) {
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return Native.native.clip_norm(native, pins.All, max);
  }
}

}
