using System;

namespace ScaleTrain {

/// <summary>How a context computes.</summary>
public sealed class ContextOptions {
  /// <summary>Of each trainer; 0: this process's cores.</summary>
  public int Threads { get; set; }
  /// <summary>"cpu", or "reference", which is slow and sums in double precision.</summary>
  public string Device { get; set; } = "cpu";
  /// <summary>Bytes of all buffers together; 0: what the machine has.</summary>
  public long MemoryLimit { get; set; }
  /// <summary>Gets level, area and text of each record, from any thread; null: silent. Its exception does not end the call that it was thrown
  /// in, and arrives when that call is done.</summary>
  public Action<LogLevel, string, string> Log { get; set; }
  /// <summary>In place of the library's own threads; null: those.</summary>
  public ParallelFunction Parallel { get; set; }
  /// <summary>The file of measured tiles; "": none; null: the environment's.</summary>
  public string TuningCache { get; set; }
  /// <summary>Models get their parameters when something asks for them: a trainer of zero 3 in a group, or of zero 1 and 2
  /// with 16 bits, makes its rank's pieces alone.</summary>
  public bool LateParameters { get; set; }
}

/// <summary>Where computing happens.</summary>
public sealed class Context : Handle {
  internal readonly Native.Context native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>This process's cores, all of this machine's memory.</summary>
  public Context() : this(new ContextOptions()) {}

  /// <summary>As the options say.</summary>
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

  /// <summary>Ends what is running in it, with a <see cref="CancelledException"/>; from any thread.</summary>
  [OfC("st_context_cancel")]
  public void Cancel() { native.cancel(); }

  /// <summary>Gives back what is only kept for speed.</summary>
  [OfC("st_context_trim")]
  public void Trim() { native.trim(); }

  /// <summary>Bytes of its buffers now and at their peak, by what they are for.</summary>
  [OfC("st_context_memory", "st_memory_role_name")]
  public MemoryStats Memory() { return new MemoryStats(native.memory()); }

  /// <summary>Every peak of <see cref="Memory"/> is what is there now, and grows from here.</summary>
  [OfC("st_context_reset_peak")]
  public void ResetPeak() { native.reset_peak(); }

  /// <summary>From now on graphs of this context have the op <paramref name="name"/>: <c>graph.Op(name, x)</c>. With a gradient where it is an
  /// <see cref="IDifferentiableHostOp"/>.</summary>
  [OfC("st_op_register")]
  public void RegisterOp(string name, IHostOp op, int outputs = 1) {
    Safe.Keep(Given(op, "op"));
    native.register_op_of(Given(name, "name"), Bridge.Weak(Safe, op), outputs, op is IDifferentiableHostOp);
  }

  /// <summary>The norm of all gradients together before clipping; above <paramref name="max"/> they are scaled down to it in place. max 0: they are
  /// only read. A norm that is not finite is returned, and they stay as they are.</summary>
  [OfC("st_clip_norm")]
  public double ClipNorm(double max, params View[] gradients) {
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return Native.native.clip_norm(native, pins.All, max);
  }
}

}
