using System;
using System.Runtime.InteropServices;

namespace ScaleTrain {

/// <summary>The function applied to each element of a product.</summary>
public enum Activation {
  /// <summary>x</summary>
  None = 0,
  /// <summary>max(x, 0)</summary>
  Relu = 1,
  /// <summary>GELU in the tanh approximation</summary>
  GeluTanh = 2,
  /// <summary>GELU with the error function, exact</summary>
  GeluErf = 3,
  /// <summary>x sigmoid(x)</summary>
  Silu = 4
}

/// <summary>The order of the loops.</summary>
public enum GemmOrder {
  /// <summary>The library chooses.</summary>
  Choose = 0,
  /// <summary>B is packed once; C is visited once for each tile of K.</summary>
  NKM = 1,
  /// <summary>A block of C is finished before the next begins.</summary>
  NMK = 2
}

/// <summary>Whether B is packed for a product.</summary>
public enum GemmPacking {
  /// <summary>The library chooses.</summary>
  Choose = 0,
  /// <summary>B is packed.</summary>
  Packed = 1,
  /// <summary>B is read in place.</summary>
  InPlace = 2
}

/// <summary>Where the tiles come from.</summary>
public enum GemmSource {
  /// <summary>The library's table by kernel class.</summary>
  Table = 0,
  /// <summary>The table, except for the sizes that the program requested.</summary>
  Requested = 1,
  /// <summary>The file of measured tiles.</summary>
  Cache = 2,
  /// <summary>Measured when the plan was created.</summary>
  Tuned = 3
}

/// <summary>The library that computes a product.</summary>
public enum GemmLibrary {
  /// <summary>ScaleTrain's own kernels.</summary>
  Own = 0,
  /// <summary>Third-party libraries are measured too; the fastest computes the product and determines its bits.</summary>
  Automatic = 1
}

/// <summary>The layout of a matrix. Strides are in elements. If Row and Column are 0 the matrix is row-major without gaps; if Batch is 0 the
/// matrices follow each other without gaps.</summary>
public sealed class GemmLayout {
  /// <summary>F32, Bf16 or F16.</summary>
  public DType DType { get; set; } = DType.F32;
  /// <summary>Stride from one row to the next.</summary>
  public long Row { get; set; }
  /// <summary>Stride from one column to the next.</summary>
  public long Column { get; set; }
  /// <summary>Stride from one matrix to the next.</summary>
  public long Batch { get; set; }
  /// <summary>Whether the whole batch uses one matrix; not allowed for C.</summary>
  public bool Shared { get; set; }

  /// <summary>Row-major without gaps, with this dtype.</summary>
  public static implicit operator GemmLayout(DType dtype) { return new GemmLayout { DType = dtype }; }

  internal Native.GemmLayout Raw() { return new Native.GemmLayout { dtype = (int)DType, row = Row, column = Column, batch = Batch, shared = Shared }; }
}

/// <summary>A product of A [m, k] and B [k, n] into C [m, n].</summary>
public sealed class GemmProblem {
  /// <summary>Rows of A and C.</summary>
  public long M { get; set; }
  /// <summary>Columns of B and C.</summary>
  public long N { get; set; }
  /// <summary>Columns of A, rows of B.</summary>
  public long K { get; set; }
  /// <summary>Number of products.</summary>
  public long Batch { get; set; } = 1;
  /// <summary>The layout of A.</summary>
  public GemmLayout A { get; set; } = new GemmLayout();
  /// <summary>The layout of B.</summary>
  public GemmLayout B { get; set; } = new GemmLayout();
  /// <summary>The layout of C.</summary>
  public GemmLayout C { get; set; } = new GemmLayout();

  /// <summary>A problem whose sizes are set later.</summary>
  public GemmProblem() {}

  /// <summary>One product of row-major float matrices.</summary>
  public GemmProblem(long m, long n, long k) {
    M = m;
    N = n;
    K = k;
  }
}

/// <summary>A requested schedule. The library chooses whatever is 0.</summary>
public sealed class GemmSchedule {
  /// <summary>Threads of a run; 0 means the context's.</summary>
  public int Threads { get; set; }
  /// <summary>Rows that one thread computes at a time.</summary>
  public long TileM { get; set; }
  /// <summary>Columns that one thread computes at a time.</summary>
  public long TileN { get; set; }
  /// <summary>Length at which the sum over K is cut. The bits depend on it.</summary>
  public long TileK { get; set; }
  /// <summary>Rows that are packed at a time, for all threads.</summary>
  public long BlockM { get; set; }
  /// <summary>Columns that are packed at a time, for all threads.</summary>
  public long BlockN { get; set; }
  /// <summary>Rows in registers.</summary>
  public long MicroM { get; set; }
  /// <summary>The order of the loops.</summary>
  public GemmOrder Order { get; set; }
  /// <summary>Whether B is packed.</summary>
  public GemmPacking Packing { get; set; }
  /// <summary>Maximum scratch memory of a run, in bytes; 0 means what the context has left.</summary>
  public long MaxScratchBytes { get; set; }
  /// <summary>Time that creating the plan may spend on measuring tiles; 0 for no measuring.</summary>
  public int TuneMilliseconds { get; set; }
  /// <summary>The library that computes the product.</summary>
  public GemmLibrary Library { get; set; }
}

/// <summary>Operations applied to alpha A B + beta C, in this order. Null properties are skipped.</summary>
public sealed class Epilogue {
  /// <summary>A bias [n], added to each row.</summary>
  public View Bias { get; set; }
  /// <summary>Receives the input of the activation.</summary>
  public View PreActivation { get; set; }
  /// <summary>The function applied to each element.</summary>
  public Activation Activation { get; set; }
  /// <summary>If set, multiplies by the derivative of the activation at these values, instead of applying the activation.</summary>
  public View DerivativeAt { get; set; }
  /// <summary>An array that is added.</summary>
  public View Residual { get; set; }
  /// <summary>An array [n] that receives the sums of C over its rows.</summary>
  public View ColumnSums { get; set; }
}

/// <summary>A packed matrix B, for plans with the same packing. Created by <see cref="Gemm.Pack"/>.</summary>
public sealed class PackedMatrix : Handle {
  internal readonly Native.PackedMatrix native;
  internal override NativeHandle Safe { get { return native.handle; } }

  internal PackedMatrix(Native.PackedMatrix made, NativeHandle parent) {
    native = made;
    Safe.KeepWhat(parent);
  }

  /// <summary>Packs another B into the same memory.</summary>
  [OfC("st_gemm_repack")]
  public void Repack(View b) {
    using (Pins pins = Pins.Borrow(b, "b")) native.repack(pins.First);
  }
}

/// <summary>A plan for a product over the program's arrays. Create it once and run it often; runs do not allocate.</summary>
public sealed class Gemm : Handle {
  private static readonly Epilogue none = new Epilogue();
  private readonly Native.Gemm native;
  private readonly long m, n, k;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>A plan for row-major float matrices: [m, k] x [k, n].</summary>
  public Gemm(Context context, long m, long n, long k) : this(context, new GemmProblem(m, n, k)) {}

  /// <summary>A plan for this problem. If wish is null, the library chooses the schedule.</summary>
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

  /// <summary>C = alpha A B + beta C, then the epilogue. With beta 0, C is not read.</summary>
  [OfC("st_gemm_run")]
  public void Run(View a, View b, View c, float alpha = 1, float beta = 0, Epilogue epilogue = null) {
    Epilogue after = epilogue ?? none;
    using (Pins pins = Pins.Rent()) {
      pins.Make(8, 0);
      int ofA = pins.Add(Given(a, "a")), ofB = pins.Add(Given(b, "b")), ofC = pins.Add(Given(c, "c"));
      int bias = pins.AddSome(after.Bias), before = pins.AddSome(after.PreActivation), at = pins.AddSome(after.DerivativeAt);
      int residual = pins.AddSome(after.Residual), sums = pins.AddSome(after.ColumnSums);
      native.multiply(alpha, pins.At(ofA), pins.At(ofB), beta, pins.At(ofC), (int)after.Activation, pins.At(bias), pins.At(before), pins.At(at),
                      pins.At(residual), pins.At(sums));
    }
  }

  /// <summary>The same over spans, row-major without gaps, for a plan of one product of float matrices.</summary>
  public unsafe void Run(ReadOnlySpan<float> a, ReadOnlySpan<float> b, Span<float> c, float alpha = 1, float beta = 0, Epilogue epilogue = null) {
    fixed (float* atA = &MemoryMarshal.GetReference(a), atB = &MemoryMarshal.GetReference(b), atC = &MemoryMarshal.GetReference(c))
      Run(Flat(atA, a.Length, m, k, "a"), Flat(atB, b.Length, k, n, "b"), Flat(atC, c.Length, m, n, "c"), alpha, beta, epilogue);
  }

  /// <summary>The same over arrays with as many elements as the matrices.</summary>
  public void Run(float[] a, float[] b, float[] c, float alpha = 1, float beta = 0, Epilogue epilogue = null) {
    Run(Given(a, "a").AsSpan(), Given(b, "b").AsSpan(), Given(c, "c").AsSpan(), alpha, beta, epilogue);
  }

  /// <summary>The same with a packed B.</summary>
  [OfC("st_gemm_run_packed")]
  public void Run(View a, PackedMatrix b, View c, float alpha = 1, float beta = 0, Epilogue epilogue = null) {
    Epilogue after = epilogue ?? none;
    using (Pins pins = Pins.Rent()) {
      pins.Make(7, 0);
      int ofA = pins.Add(Given(a, "a")), ofC = pins.Add(Given(c, "c"));
      int bias = pins.AddSome(after.Bias), before = pins.AddSome(after.PreActivation), at = pins.AddSome(after.DerivativeAt);
      int residual = pins.AddSome(after.Residual), sums = pins.AddSome(after.ColumnSums);
      native.multiply_packed(alpha, pins.At(ofA), Given(b, "b").native, beta, pins.At(ofC), (int)after.Activation, pins.At(bias), pins.At(before),
                             pins.At(at), pins.At(residual), pins.At(sums));
    }
  }

  /// <summary>Packs B once for many runs.</summary>
  [OfC("st_gemm_pack")]
  public PackedMatrix Pack(View b) {
    using (Pins pins = Pins.Borrow(b, "b")) return new PackedMatrix(native.pack(pins.First), Safe);
  }

  private static unsafe View Flat(float* first, long length, long rows, long columns, string name) {
    if (length != rows * columns) throw new InvalidArgumentException(name + ": [" + rows + ", " + columns + "] needs a span of " + rows * columns + " elements, got " + length);
    return View.At((IntPtr)first, DType.F32, rows, columns);
  }

  /// <summary>The chosen schedule, and the speed of the last run.</summary>
  [OfC("st_gemm_plan_info")]
  public GemmInfo Info() { return new GemmInfo(native.info()); }
}

/// <summary>The schedule that a plan chose, and the speed of its last run.</summary>
public sealed class GemmInfo {
  /// <summary>Whether a size differs from the requested one.</summary>
  public bool Adjusted { get; }
  /// <summary>Rows that one thread computes at a time.</summary>
  public long TileM { get; }
  /// <summary>Columns that one thread computes at a time.</summary>
  public long TileN { get; }
  /// <summary>Length at which the sum over K is cut.</summary>
  public long TileK { get; }
  /// <summary>Rows that are packed at a time, for all threads.</summary>
  public long BlockM { get; }
  /// <summary>Columns that are packed at a time, for all threads.</summary>
  public long BlockN { get; }
  /// <summary>Rows in registers.</summary>
  public long MicroM { get; }
  /// <summary>Columns in registers.</summary>
  public long MicroN { get; }
  /// <summary>The order of the loops.</summary>
  public GemmOrder Order { get; }
  /// <summary>Whether B is packed.</summary>
  public GemmPacking Packing { get; }
  /// <summary>Threads of a run.</summary>
  public int Threads { get; }
  /// <summary>Instruction set of the kernel: "avx512", "avx2", ...</summary>
  public string InstructionSet { get; }
  /// <summary>Scratch memory of the plan.</summary>
  public long ScratchBytes { get; }
  /// <summary>Size of a packed B.</summary>
  public long PackedBytes { get; }
  /// <summary>Speed of the last run; 0 if there was none yet.</summary>
  public double FlopsPerSecond { get; }
  /// <summary>Speed that the machine model predicts; 0 if there is no model.</summary>
  public double PredictedFlopsPerSecond { get; }
  /// <summary>Where the tiles come from.</summary>
  public GemmSource Source { get; }
  /// <summary>"own", or a third-party library and its version.</summary>
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
