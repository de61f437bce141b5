using System;
using System.Runtime.InteropServices;

namespace ScaleTrain {

/// <summary>What is behind a product.</summary>
public enum Activation {
  /// <summary>x</summary>
  None = 0,
  /// <summary>max(x, 0)</summary>
  Relu = 1,
  /// <summary>GELU by tanh</summary>
  GeluTanh = 2,
  /// <summary>GELU by the error function</summary>
  GeluErf = 3,
  /// <summary>x sigmoid(x)</summary>
  Silu = 4
}

/// <summary>Which loop is where.</summary>
public enum GemmOrder {
  /// <summary>The library chooses.</summary>
  Choose = 0,
  /// <summary>B is packed once; C is visited once for each piece of K.</summary>
  NKM = 1,
  /// <summary>A block of C is finished before the next begins.</summary>
  NMK = 2
}

/// <summary>How B is read.</summary>
public enum GemmPacking {
  /// <summary>The library chooses.</summary>
  Choose = 0,
  /// <summary>Laid out before.</summary>
  Packed = 1,
  /// <summary>Where it lies.</summary>
  InPlace = 2
}

/// <summary>Where tiles come from.</summary>
public enum GemmSource {
  /// <summary>A fixed table by kernel class.</summary>
  Table = 0,
  /// <summary>That, but for what was wished for.</summary>
  Wish = 1,
  /// <summary>Measured before.</summary>
  Cache = 2,
  /// <summary>Measured when the plan was made.</summary>
  Tuned = 3
}

/// <summary>What may multiply.</summary>
public enum GemmLibrary {
  /// <summary>Our kernels.</summary>
  Own = 0,
  /// <summary>Libraries of others are measured too, and the bits are the winner's.</summary>
  Automatic = 1
}

/// <summary>How a matrix lies. Strides in elements; row and column 0: row-major without gaps. Batch 0 behind them: one matrix behind the other.</summary>
public sealed class GemmLayout {
  /// <summary>F32, Bf16 or F16.</summary>
  public DType DType { get; set; } = DType.F32;
  /// <summary>Elements between rows.</summary>
  public long Row { get; set; }
  /// <summary>Elements between columns.</summary>
  public long Column { get; set; }
  /// <summary>Elements between matrices.</summary>
  public long Batch { get; set; }
  /// <summary>One matrix for the whole batch; not for C.</summary>
  public bool Shared { get; set; }

  /// <summary>Row-major without gaps, of this dtype.</summary>
  public static implicit operator GemmLayout(DType dtype) { return new GemmLayout { DType = dtype }; }

  internal Native.GemmLayout Raw() { return new Native.GemmLayout { dtype = (int)DType, row = Row, column = Column, batch = Batch, shared = Shared }; }
}

/// <summary>A [m, k], B [k, n], C [m, n].</summary>
public sealed class GemmProblem {
  /// <summary>Rows of A and C.</summary>
  public long M { get; set; }
  /// <summary>Columns of B and C.</summary>
  public long N { get; set; }
  /// <summary>Columns of A, rows of B.</summary>
  public long K { get; set; }
  /// <summary>As many products.</summary>
  public long Batch { get; set; } = 1;
  /// <summary>How A lies.</summary>
  public GemmLayout A { get; set; } = new GemmLayout();
  /// <summary>How B lies.</summary>
  public GemmLayout B { get; set; } = new GemmLayout();
  /// <summary>How C lies.</summary>
  public GemmLayout C { get; set; } = new GemmLayout();

  /// <summary>To be filled.</summary>
  public GemmProblem() {}

  /// <summary>Of float, row-major, one product.</summary>
  public GemmProblem(long m, long n, long k) {
    M = m;
    N = n;
    K = k;
  }
}

/// <summary>A wish; 0: choose.</summary>
public sealed class GemmSchedule {
  /// <summary>Of a run; 0: the context's.</summary>
  public int Threads { get; set; }
  /// <summary>What one thread takes at a time.</summary>
  public long TileM { get; set; }
  /// <summary>What one thread takes at a time.</summary>
  public long TileN { get; set; }
  /// <summary>Where the sum over K is cut: the bits depend on it.</summary>
  public long TileK { get; set; }
  /// <summary>What is packed at a time.</summary>
  public long BlockM { get; set; }
  /// <summary>What is packed at a time.</summary>
  public long BlockN { get; set; }
  /// <summary>Rows in registers.</summary>
  public long MicroM { get; set; }
  /// <summary>Of the loops.</summary>
  public GemmOrder Order { get; set; }
  /// <summary>Of B.</summary>
  public GemmPacking Packing { get; set; }
  /// <summary>0: what the context has left.</summary>
  public long MaxScratchBytes { get; set; }
  /// <summary>Measured for at most so long when the plan is made; 0: never.</summary>
  public int TuneMilliseconds { get; set; }
  /// <summary>What may multiply.</summary>
  public GemmLibrary Library { get; set; }
}

/// <summary>Behind alpha A B + beta C, in this order; null: not.</summary>
public sealed class Epilogue {
  /// <summary>[n], added to each row.</summary>
  public View Bias { get; set; }
  /// <summary>Filled with the value before the activation.</summary>
  public View PreActivation { get; set; }
  /// <summary>Of each element.</summary>
  public Activation Activation { get; set; }
  /// <summary>Times the activation's derivative at these, in its place.</summary>
  public View DerivativeAt { get; set; }
  /// <summary>Added.</summary>
  public View Residual { get; set; }
  /// <summary>[n], filled with the sums of C over its rows.</summary>
  public View ColumnSums { get; set; }
}

/// <summary>B, laid out for the plans that pack alike. Made by <see cref="Gemm.Pack"/>.</summary>
public sealed class PackedMatrix : Handle {
  internal readonly Native.PackedMatrix native;
  internal override NativeHandle Safe { get { return native.handle; } }

  internal PackedMatrix(Native.PackedMatrix made, NativeHandle parent) {
    native = made;
    Safe.KeepWhat(parent);
  }

  /// <summary>Another B, in place.</summary>
  [OfC("st_gemm_repack")]
  public void Repack(View b) {
    using (Pins pins = Pins.Borrow(b, "b")) native.repack(pins.First);
  }
}

/// <summary>A plan of products over the program's arrays: made once, run often without allocating.</summary>
public sealed class Gemm : Handle {
  private static readonly Epilogue none = new Epilogue();
  private readonly Native.Gemm native;
  private readonly long m, n, k;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Of float, row-major: [m, k] x [k, n].</summary>
  public Gemm(Context context, long m, long n, long k) : this(context, new GemmProblem(m, n, k)) {}

  /// <summary>wish null: the library chooses all.</summary>
  [OfC("st_gemm_plan_create")]
  public Gemm(Context context, GemmProblem problem, GemmSchedule wish = null) {
    Given(problem, "problem");
    m = problem.M;
    n = problem.N;
    k = problem.K;
    GemmSchedule tiles = wish ?? new GemmSchedule();
    Native.GemmLayout a = Given(problem.A, "A").Raw(), b = Given(problem.B, "B").Raw(), c = Given(problem.C, "C").Raw();
    var raw = new Native.GemmProblem { m = problem.M, n = problem.N, k = problem.K, batch = problem.Batch, a = a, b = b, c = c };
    var schedule = new Native.GemmSchedule {
      threads = tiles.Threads, tile_m = tiles.TileM, tile_n = tiles.TileN, tile_k = tiles.TileK, block_m = tiles.BlockM, block_n = tiles.BlockN,
      micro_m = tiles.MicroM, order = (int)tiles.Order, packing = (int)tiles.Packing, max_scratch_bytes = tiles.MaxScratchBytes,
      tune_ms = tiles.TuneMilliseconds, library = (int)tiles.Library
    };
    native = new Native.Gemm(Given(context, "context").native, raw, schedule);
    foreach (NativeHandle part in new[] { a.handle, b.handle, c.handle, raw.handle, schedule.handle }) part.Dispose();
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>C = alpha A B + beta C, then the epilogue. beta 0 does not read C.</summary>
  [OfC("st_gemm_run")]
  public void Run(View a, View b, View c, float alpha = 1, float beta = 0, Epilogue epilogue = null) {
    Epilogue behind = epilogue ?? none;
    using (Pins pins = Pins.Rent()) {
      pins.Make(8, 0);
      int ofA = pins.Add(Given(a, "a")), ofB = pins.Add(Given(b, "b")), ofC = pins.Add(Given(c, "c"));
      int bias = pins.AddSome(behind.Bias), before = pins.AddSome(behind.PreActivation), at = pins.AddSome(behind.DerivativeAt);
      int residual = pins.AddSome(behind.Residual), sums = pins.AddSome(behind.ColumnSums);
      native.multiply(alpha, pins.At(ofA), pins.At(ofB), beta, pins.At(ofC), (int)behind.Activation, pins.At(bias), pins.At(before), pins.At(at),
                      pins.At(residual), pins.At(sums));
    }
  }

  /// <summary>The same over spans, row-major without gaps, of a plan of float that is one product.</summary>
  public unsafe void Run(ReadOnlySpan<float> a, ReadOnlySpan<float> b, Span<float> c, float alpha = 1, float beta = 0, Epilogue epilogue = null) {
    fixed (float* atA = &MemoryMarshal.GetReference(a), atB = &MemoryMarshal.GetReference(b), atC = &MemoryMarshal.GetReference(c))
      Run(Flat(atA, a.Length, m, k, "a"), Flat(atB, b.Length, k, n, "b"), Flat(atC, c.Length, m, n, "c"), alpha, beta, epilogue);
  }

  /// <summary>The same over arrays of as many elements.</summary>
  public void Run(float[] a, float[] b, float[] c, float alpha = 1, float beta = 0, Epilogue epilogue = null) {
    Run(Given(a, "a").AsSpan(), Given(b, "b").AsSpan(), Given(c, "c").AsSpan(), alpha, beta, epilogue);
  }

  /// <summary>The same with a packed B.</summary>
  [OfC("st_gemm_run_packed")]
  public void Run(View a, PackedMatrix b, View c, float alpha = 1, float beta = 0, Epilogue epilogue = null) {
    Epilogue behind = epilogue ?? none;
    using (Pins pins = Pins.Rent()) {
      pins.Make(7, 0);
      int ofA = pins.Add(Given(a, "a")), ofC = pins.Add(Given(c, "c"));
      int bias = pins.AddSome(behind.Bias), before = pins.AddSome(behind.PreActivation), at = pins.AddSome(behind.DerivativeAt);
      int residual = pins.AddSome(behind.Residual), sums = pins.AddSome(behind.ColumnSums);
      native.multiply_packed(alpha, pins.At(ofA), Given(b, "b").native, beta, pins.At(ofC), (int)behind.Activation, pins.At(bias), pins.At(before),
                             pins.At(at), pins.At(residual), pins.At(sums));
    }
  }

  /// <summary>B, laid out once for many runs.</summary>
  [OfC("st_gemm_pack")]
  public PackedMatrix Pack(View b) {
    using (Pins pins = Pins.Borrow(b, "b")) return new PackedMatrix(native.pack(pins.First), Safe);
  }

  private static unsafe View Flat(float* first, long length, long rows, long columns, string name) {
    if (length != rows * columns) throw new InvalidArgumentException(name + ": a span of " + length + " elements for [" + rows + ", " + columns + "]");
    return View.At((IntPtr)first, DType.F32, rows, columns);
  }

  /// <summary>What was chosen, and how fast the last run was.</summary>
  [OfC("st_gemm_plan_info")]
  public GemmInfo Info() { return new GemmInfo(native.info()); }
}

/// <summary>What a plan chose.</summary>
public sealed class GemmInfo {
  /// <summary>A size is another one than wished.</summary>
  public bool Adjusted { get; }
  /// <summary>What one thread takes at a time.</summary>
  public long TileM { get; }
  /// <summary>What one thread takes at a time.</summary>
  public long TileN { get; }
  /// <summary>Where the sum over K is cut.</summary>
  public long TileK { get; }
  /// <summary>What is packed at a time.</summary>
  public long BlockM { get; }
  /// <summary>What is packed at a time.</summary>
  public long BlockN { get; }
  /// <summary>Rows in registers.</summary>
  public long MicroM { get; }
  /// <summary>Columns in registers.</summary>
  public long MicroN { get; }
  /// <summary>Of the loops.</summary>
  public GemmOrder Order { get; }
  /// <summary>Of B.</summary>
  public GemmPacking Packing { get; }
  /// <summary>Of a run.</summary>
  public int Threads { get; }
  /// <summary>"avx512", "avx2", ...</summary>
  public string InstructionSet { get; }
  /// <summary>Of the plan.</summary>
  public long ScratchBytes { get; }
  /// <summary>Of a packed B.</summary>
  public long PackedBytes { get; }
  /// <summary>Of the last run; 0: none yet.</summary>
  public double FlopsPerSecond { get; }
  /// <summary>By a model of this machine; 0: there is none.</summary>
  public double PredictedFlopsPerSecond { get; }
  /// <summary>Where the tiles come from.</summary>
  public GemmSource Source { get; }
  /// <summary>"own", or a library of others and its version.</summary>
  public string Library { get; }

  internal GemmInfo(Native.GemmInfo raw) {
    Adjusted = raw.adjusted;
    TileM = raw.tile_m;
    TileN = raw.tile_n;
    TileK = raw.tile_k;
    BlockM = raw.block_m;
    BlockN = raw.block_n;
    MicroM = raw.micro_m;
    MicroN = raw.micro_n;
    Order = (GemmOrder)raw.order;
    Packing = (GemmPacking)raw.packing;
    Threads = raw.threads;
    InstructionSet = raw.instruction_set;
    ScratchBytes = raw.scratch_bytes;
    PackedBytes = raw.packed_bytes;
    FlopsPerSecond = raw.flops_per_second;
    PredictedFlopsPerSecond = raw.predicted_flops_per_second;
    Source = (GemmSource)raw.source;
    Library = raw.library;
    raw.handle.Dispose();
  }
}

}
