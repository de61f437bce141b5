using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>What becomes of the elements that ranks bring.</summary>
public enum ReduceOp {
  /// <summary>In the order of the ranks, in fp32 (of f64: fp64), rounded once.</summary>
  Sum = 1,
  /// <summary>The sum by the number of ranks; of floating types.</summary>
  Mean = 2,
  /// <summary>NaN where a rank has one.</summary>
  Max = 3,
  /// <summary>NaN where a rank has one.</summary>
  Min = 4
}

/// <summary>How long the ranks of a <see cref="Communicator"/> wait for each other, and whether there must be others.</summary>
public sealed class CommunicatorOptions {
  /// <summary>That a wait may take without a byte from whom it waits for.</summary>
  public TimeSpan Deadline { get; set; } = TimeSpan.FromMinutes(1);
  /// <summary>That processes wait for each other at the start.</summary>
  public TimeSpan Start { get; set; } = TimeSpan.FromMinutes(1);
  /// <summary>For <see cref="Communicator.Env"/>: where no launcher has started this process it is one rank alone, and not an error.</summary>
  public bool AllowSingle { get; set; }
}

/// <summary>What of an array's elements is one rank's.</summary>
public struct Share {
  /// <summary>The first of them.</summary>
  public long Begin { get; }
  /// <summary>How many; may be 0.</summary>
  public long Count { get; }

  internal Share(long begin, long end) {
    Begin = begin;
    Count = end - begin;
  }
}

/// <summary>One rank of a group that exchanges arrays: ranks are threads of this process (<see cref="Local"/>), each with one of these, or processes of
/// this machine. All ranks make the same calls in the same order; name is what errors and the flight record call an array.</summary>
/// <remarks>Arrays are row-major without gaps, of any dtype but bool, and are exchanged where they lie. The calls that begin return at once; their arrays
/// stay pinned until the <see cref="Pending"/> is disposed of, which waits for the end of the work. Where a rank dies, leaves or aborts, the calls of the
/// others throw <see cref="RankFailedException"/> with its rank, host and collective; where one does not come, <see cref="TimedOutException"/>. Then the group is
/// over, and each later call says so again.</remarks>
public sealed class Communicator : Handle {
  internal readonly Native.Communicator native;
  internal override NativeHandle Safe { get { return native.handle; } }

  private Communicator(Native.Communicator made, Context context) {
    native = made;
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>The ranks of a group of threads, 1 to 256 of them. options null: the defaults.</summary>
  [OfC("st_communicator_local")]
  public static IReadOnlyList<Communicator> Local(Context context, int ranks, CommunicatorOptions options = null) {
    Given(context, "context");
    Native.LocalRanks made = With(options, raw => new Native.LocalRanks(context.native, ranks, raw));
    try {
      var all = new List<Communicator>();
      for (int rank = 0; rank < ranks; ++rank) all.Add(new Communicator(made.take(rank), context));
      return all;
    } finally {
      made.handle.Dispose();
    }
  }

  /// <summary>Rank <paramref name="rank"/> of so many processes of this machine, which have the text <paramref name="job"/> in common; returns when all are
  /// there.</summary>
  [OfC("st_communicator_processes")]
  public static Communicator Processes(Context context, string job, int rank, int size, CommunicatorOptions options = null) {
    Given(context, "context");
    Given(job, "job");
    return new Communicator(With(options, raw => Native.Communicator.processes(context.native, job, rank, size, raw)), context);
  }

  /// <summary>The rank that scaletrain launch, torchrun, mpirun or srun made this process.</summary>
  [OfC("st_communicator_env")]
  public static Communicator Env(Context context, CommunicatorOptions options = null) {
    Given(context, "context");
    return new Communicator(With(options, raw => Native.Communicator.env(context.native, raw)), context);
  }

  /// <summary>The rank that this process is in a group of another library's: "mpi" and the address of an MPI_Comm, or zero for MPI_COMM_WORLD.</summary>
  [OfC("st_communicator_host")]
  public static Communicator Host(Context context, string transport, IntPtr group, CommunicatorOptions options = null) {
    Given(context, "context");
    Given(transport, "transport");
    return new Communicator(With(options, raw => Native.Communicator.host_at(context.native, transport, group.ToInt64(), raw)), context);
  }

  /// <summary>Rank <paramref name="rank"/> of so many that reach each other by a transport of the program's own, which is kept until the group is
  /// over.</summary>
  [OfC("st_communicator_callbacks")]
  public static Communicator Callbacks(Context context, int rank, int size, ITransport transport, CommunicatorOptions options = null) {
    Given(context, "context");
    var end = new TransportEnd(Given(transport, "transport"));
    return new Communicator(
      With(options, raw => Native.Communicator.callbacks(context.native, rank, size, Bridge.Strong(context.Safe, end), raw)), context);
  }

  /// <summary>This one's number, from 0.</summary>
  [OfC("st_communicator_rank")]
  public int Rank { get { return native.rank(); } }

  /// <summary>How many ranks the group has.</summary>
  [OfC("st_communicator_size")]
  public int Size { get { return native.size(); } }

  /// <summary>Which of so many elements are a rank's in <see cref="ReduceScatter"/> and <see cref="AllGather"/>.</summary>
  [OfC("st_communicator_share")]
  public Share ShareOf(long elements, int rank) { return new Share(native.share_begin(elements, rank), native.share_end(elements, rank)); }

  /// <summary>The array becomes that of all ranks reduced.</summary>
  [OfC("st_communicator_all_reduce")]
  public void AllReduce(View view, ReduceOp op = ReduceOp.Sum, string name = "") {
    using (Pins pins = Pins.Borrow(view, "view")) native.all_reduce(pins.First, (int)op, Named(name));
  }

  /// <summary><see cref="AllReduce"/> behind the call.</summary>
  public Pending BeginAllReduce(View view, ReduceOp op = ReduceOp.Sum, string name = "") {
    return Begun(pins => native.all_reduce_async(pins.First, (int)op, Named(name)), view);
  }

  /// <summary>own gets this rank's share of all ranks' whole reduced; it may be that part of it.</summary>
  [OfC("st_communicator_reduce_scatter")]
  public void ReduceScatter(View whole, View own, ReduceOp op = ReduceOp.Sum, string name = "") {
    using (Pins pins = Pins.Borrow(new[] { whole, own }, "arrays")) native.reduce_scatter(pins.At(0), pins.At(1), (int)op, Named(name));
  }

  /// <summary><see cref="ReduceScatter"/> behind the call.</summary>
  public Pending BeginReduceScatter(View whole, View own, ReduceOp op = ReduceOp.Sum, string name = "") {
    return Begun(pins => native.reduce_scatter_async(pins.At(0), pins.At(1), (int)op, Named(name)), whole, own);
  }

  /// <summary>whole gets every rank's share, own, which may be that part of it.</summary>
  [OfC("st_communicator_all_gather")]
  public void AllGather(View own, View whole, string name = "") {
    using (Pins pins = Pins.Borrow(new[] { own, whole }, "arrays")) native.all_gather(pins.At(0), pins.At(1), Named(name));
  }

  /// <summary><see cref="AllGather"/> behind the call.</summary>
  public Pending BeginAllGather(View own, View whole, string name = "") {
    return Begun(pins => native.all_gather_async(pins.At(0), pins.At(1), Named(name)), own, whole);
  }

  /// <summary>Of as many equal parts as there are ranks, part i goes to rank i, and its part for us becomes part i of <paramref name="to"/>.</summary>
  [OfC("st_communicator_all_to_all")]
  public void AllToAll(View from, View to, string name = "") {
    using (Pins pins = Pins.Borrow(new[] { from, to }, "arrays")) native.all_to_all(pins.At(0), pins.At(1), Named(name));
  }

  /// <summary><see cref="AllToAll"/> behind the call.</summary>
  public Pending BeginAllToAll(View from, View to, string name = "") {
    return Begun(pins => native.all_to_all_async(pins.At(0), pins.At(1), Named(name)), from, to);
  }

  /// <summary>All get the array that rank <paramref name="root"/> has.</summary>
  [OfC("st_communicator_broadcast")]
  public void Broadcast(View view, int root = 0, string name = "") {
    using (Pins pins = Pins.Borrow(view, "view")) native.broadcast(pins.First, root, Named(name));
  }

  /// <summary><see cref="Broadcast"/> behind the call.</summary>
  public Pending BeginBroadcast(View view, int root = 0, string name = "") {
    return Begun(pins => native.broadcast_async(pins.First, root, Named(name)), view);
  }

  /// <summary>To one other rank, which receives as many elements.</summary>
  [OfC("st_communicator_send")]
  public void Send(View view, int to, string name = "") {
    using (Pins pins = Pins.Borrow(view, "view")) native.send(pins.First, to, Named(name));
  }

  /// <summary><see cref="Send"/> behind the call.</summary>
  public Pending BeginSend(View view, int to, string name = "") {
    return Begun(pins => native.send_async(pins.First, to, Named(name)), view);
  }

  /// <summary>What rank <paramref name="from"/> sends.</summary>
  [OfC("st_communicator_receive")]
  public void Receive(View view, int from, string name = "") {
    using (Pins pins = Pins.Borrow(view, "view")) native.receive(pins.First, from, Named(name));
  }

  /// <summary><see cref="Receive"/> behind the call.</summary>
  public Pending BeginReceive(View view, int from, string name = "") {
    return Begun(pins => native.receive_async(pins.First, from, Named(name)), view);
  }

  /// <summary>Returns when all ranks are here.</summary>
  [OfC("st_communicator_barrier")]
  public void Barrier(string name = "") { native.barrier(Named(name)); }

  /// <summary><see cref="Barrier"/> behind the call.</summary>
  public Pending BeginBarrier(string name = "") { return new Pending(native.barrier_async(Named(name)), Safe); }

  /// <summary>Ends the group, on every rank, with this reason. From any thread at any time.</summary>
  [OfC("st_communicator_abort")]
  public void Abort(string reason) { native.abort(Given(reason, "reason")); }

  /// <summary>Of elements, to other ranks, so far.</summary>
  [OfC("st_communicator_sent_bytes")]
  public long SentBytes { get { return native.sent_bytes(); } }

  /// <summary>This rank's last calls as JSON, oldest first.</summary>
  [OfC("st_communicator_flight_record")]
  public string FlightRecord() {
    lock (native) return native.flight_record();
  }

  private static T With<T>(CommunicatorOptions options, Func<Native.CommunicatorOptions, T> call) {
    CommunicatorOptions wish = options ?? new CommunicatorOptions();
    var raw = new Native.CommunicatorOptions { deadline_milliseconds = (long)wish.Deadline.TotalMilliseconds,
                                               start_milliseconds = (long)wish.Start.TotalMilliseconds, allow_single = wish.AllowSingle };
    try { return call(raw); } finally { raw.handle.Dispose(); }
  }

  private static string Named(string name) { return Given(name, "name"); }

  /// <summary>Work on arrays that are pinned until it is done.</summary>
  private Pending Begun(Func<Pins, Native.Pending> begin, params View[] views) {
    Pins pins = Pins.Hold(views, "arrays", false);
    Pending made;
    try { made = new Pending(begin(pins), Safe); } catch {
      pins.Dispose();
      throw;
    }
    made.Safe.Lend(pins);
    return made;
  }
}

}
