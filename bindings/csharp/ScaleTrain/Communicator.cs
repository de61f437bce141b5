using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>How the elements of all ranks are combined.</summary>
public enum ReduceOp {
  /// <summary>The sum in rank order, in fp32 (fp64 for f64 arrays), rounded once.</summary>
  Sum = 1,
  /// <summary>The sum divided by the number of ranks; only for floating types.</summary>
  Mean = 2,
  /// <summary>The maximum; NaN if a rank has one.</summary>
  Max = 3,
  /// <summary>The minimum; NaN if a rank has one.</summary>
  Min = 4
}

/// <summary>Options of a <see cref="Communicator"/>: how long ranks wait for each other, and whether a single rank is allowed.</summary>
public sealed class CommunicatorOptions {
  /// <summary>Maximum time of a wait without a byte from the awaited rank.</summary>
  public TimeSpan Deadline { get; set; } = TimeSpan.FromMinutes(1);
  /// <summary>Maximum time that processes wait for each other at the start.</summary>
  public TimeSpan Start { get; set; } = TimeSpan.FromMinutes(1);
  /// <summary>For <see cref="Communicator.Env"/>: a process that no launcher started becomes a single rank instead of an error.</summary>
  public bool AllowSingle { get; set; }
}

/// <summary>One rank's shard of an array.</summary>
public struct Share {
  /// <summary>Index of the first element.</summary>
  public long Begin { get; }
  /// <summary>Number of elements; may be 0.</summary>
  public long Count { get; }

  internal Share(long begin, long end) {
    Begin = begin;
    Count = end - begin;
  }
}

/// <summary>One rank of a group that exchanges arrays. Ranks are threads of this process (<see cref="Local"/>), each with its own Communicator, or
/// processes. All ranks make the same calls in the same order. name identifies an array in errors and in the flight record.</summary>
/// <remarks>Arrays are row-major without gaps, of any dtype except bool, and are exchanged in place. The Begin calls return at once; their arrays
/// stay pinned until the <see cref="Pending"/> is disposed, which waits for the end of the operation. If a rank dies, leaves or aborts, the calls
/// of the other ranks throw <see cref="RankFailedException"/> with its rank, host and collective. If a rank does not arrive in time, they throw
/// <see cref="TimedOutException"/>. After either, the group is over and each later call throws the same error.</remarks>
public sealed class Communicator : Handle {
  internal readonly Native.Communicator native;
  internal override NativeHandle Safe { get { return native.handle; } }

  private Communicator(Native.Communicator made, Context context) : this(made, context.Safe) {}
  private Communicator(Native.Communicator made, NativeHandle keeps) {
    native = made;
    Safe.KeepWhat(keeps);
  }

  /// <summary>Creates the ranks of a group of threads, 1 to 256. Give each to its own thread. Null options mean the defaults.</summary>
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

  /// <summary>Joins as rank <paramref name="rank"/> a group of <paramref name="size"/> processes on this machine that all pass the same
  /// <paramref name="job"/>. Returns when all have joined.</summary>
  [OfC("st_communicator_processes")]
  public static Communicator Processes(Context context, string job, int rank, int size, CommunicatorOptions options = null) {
    Given(context, "context");
    Given(job, "job");
    return new Communicator(With(options, raw => Native.Communicator.processes(context.native, job, rank, size, raw)), context);
  }

  /// <summary>Joins as the rank that the launcher assigned to this process: scaletrain launch, torchrun, mpirun or srun.</summary>
  [OfC("st_communicator_env")]
  public static Communicator Env(Context context, CommunicatorOptions options = null) {
    Given(context, "context");
    return new Communicator(With(options, raw => Native.Communicator.env(context.native, raw)), context);
  }

  /// <summary>Joins as this process's rank in a group of another library: "mpi" and the address of an MPI_Comm, or zero for MPI_COMM_WORLD.</summary>
  [OfC("st_communicator_host")]
  public static Communicator Host(Context context, string transport, IntPtr group, CommunicatorOptions options = null) {
    Given(context, "context");
    Given(transport, "transport");
    return new Communicator(With(options, raw => Native.Communicator.host_at(context.native, transport, group.ToInt64(), raw)), context);
  }

  /// <summary>Joins as rank <paramref name="rank"/> of <paramref name="size"/> over the program's own transport, which is kept until the group is
  /// over.</summary>
  [OfC("st_communicator_callbacks")]
  public static Communicator Callbacks(Context context, int rank, int size, ITransport transport, CommunicatorOptions options = null) {
    Given(context, "context");
    var end = new TransportEnd(Given(transport, "transport"));
    return new Communicator(
      With(options, raw => Native.Communicator.callbacks(context.native, rank, size, Bridge.Strong(context.Safe, end), raw)), context);
  }

  /// <summary>Makes groups of the ranks that give the same color, ordered by key, then by rank. All ranks make this call. The deadline is this
  /// group's; with <paramref name="allowSingle"/> a color that only this rank gives makes a group of one rank instead of an error.</summary>
  [OfC("st_communicator_split")]
  public Communicator Split(int color, int key = 0, bool allowSingle = false) {
    var options = new CommunicatorOptions { Deadline = TimeSpan.Zero, AllowSingle = allowSingle };
    return new Communicator(With(options, raw => native.split(color, key, raw)), Safe);
  }

  /// <summary>Makes a group of the same ranks, for calls in an order of their own, as from another thread. All ranks make this call.</summary>
  [OfC("st_communicator_duplicate")]
  public Communicator Duplicate() {
    return new Communicator(With(new CommunicatorOptions { Deadline = TimeSpan.Zero }, raw => native.duplicate(raw)), Safe);
  }

  /// <summary>This rank's number, from 0.</summary>
  [OfC("st_communicator_rank")]
  public int Rank { get { return native.rank(); } }

  /// <summary>Number of ranks in the group.</summary>
  [OfC("st_communicator_size")]
  public int Size { get { return native.size(); } }

  /// <summary>The shard of an array of <paramref name="elements"/> that <paramref name="rank"/> has in <see cref="ReduceScatter"/> and
  /// <see cref="AllGather"/>.</summary>
  [OfC("st_communicator_share")]
  public Share ShareOf(long elements, int rank) { return new Share(native.share_begin(elements, rank), native.share_end(elements, rank)); }

  /// <summary>Reduces the array over all ranks, in place.</summary>
  [OfC("st_communicator_all_reduce")]
  public void AllReduce(View view, ReduceOp op = ReduceOp.Sum, string name = "") {
    using (Pins pins = Pins.Borrow(view, "view")) native.all_reduce(pins.First, (int)op, Named(name));
  }

  /// <summary>Begins <see cref="AllReduce"/> in the background.</summary>
  public Pending BeginAllReduce(View view, ReduceOp op = ReduceOp.Sum, string name = "") {
    return Begun(pins => native.all_reduce_async(pins.First, (int)op, Named(name)), view);
  }

  /// <summary>Reduces whole over all ranks and writes this rank's shard to own, which may be that shard of whole.</summary>
  [OfC("st_communicator_reduce_scatter")]
  public void ReduceScatter(View whole, View own, ReduceOp op = ReduceOp.Sum, string name = "") {
    using (Pins pins = Pins.Borrow(new[] { whole, own }, "arrays")) native.reduce_scatter(pins.At(0), pins.At(1), (int)op, Named(name));
  }

  /// <summary>Begins <see cref="ReduceScatter"/> in the background.</summary>
  public Pending BeginReduceScatter(View whole, View own, ReduceOp op = ReduceOp.Sum, string name = "") {
    return Begun(pins => native.reduce_scatter_async(pins.At(0), pins.At(1), (int)op, Named(name)), whole, own);
  }

  /// <summary>Collects every rank's shard own in whole. own may be that shard of whole.</summary>
  [OfC("st_communicator_all_gather")]
  public void AllGather(View own, View whole, string name = "") {
    using (Pins pins = Pins.Borrow(new[] { own, whole }, "arrays")) native.all_gather(pins.At(0), pins.At(1), Named(name));
  }

  /// <summary>Begins <see cref="AllGather"/> in the background.</summary>
  public Pending BeginAllGather(View own, View whole, string name = "") {
    return Begun(pins => native.all_gather_async(pins.At(0), pins.At(1), Named(name)), own, whole);
  }

  /// <summary>Both arrays consist of one equal block per rank. Block i of <paramref name="from"/> goes to rank i, and the block from rank i
  /// arrives in block i of <paramref name="to"/>.</summary>
  [OfC("st_communicator_all_to_all")]
  public void AllToAll(View from, View to, string name = "") {
    using (Pins pins = Pins.Borrow(new[] { from, to }, "arrays")) native.all_to_all(pins.At(0), pins.At(1), Named(name));
  }

  /// <summary>Begins <see cref="AllToAll"/> in the background.</summary>
  public Pending BeginAllToAll(View from, View to, string name = "") {
    return Begun(pins => native.all_to_all_async(pins.At(0), pins.At(1), Named(name)), from, to);
  }

  /// <summary>Copies the array of rank <paramref name="root"/> to all ranks.</summary>
  [OfC("st_communicator_broadcast")]
  public void Broadcast(View view, int root = 0, string name = "") {
    using (Pins pins = Pins.Borrow(view, "view")) native.broadcast(pins.First, root, Named(name));
  }

  /// <summary>Begins <see cref="Broadcast"/> in the background.</summary>
  public Pending BeginBroadcast(View view, int root = 0, string name = "") {
    return Begun(pins => native.broadcast_async(pins.First, root, Named(name)), view);
  }

  /// <summary>Sends the array to one other rank, which must receive the same number of elements.</summary>
  [OfC("st_communicator_send")]
  public void Send(View view, int to, string name = "") {
    using (Pins pins = Pins.Borrow(view, "view")) native.send(pins.First, to, Named(name));
  }

  /// <summary>Begins <see cref="Send"/> in the background.</summary>
  public Pending BeginSend(View view, int to, string name = "") {
    return Begun(pins => native.send_async(pins.First, to, Named(name)), view);
  }

  /// <summary>Receives the array that rank <paramref name="from"/> sends.</summary>
  [OfC("st_communicator_receive")]
  public void Receive(View view, int from, string name = "") {
    using (Pins pins = Pins.Borrow(view, "view")) native.receive(pins.First, from, Named(name));
  }

  /// <summary>Begins <see cref="Receive"/> in the background.</summary>
  public Pending BeginReceive(View view, int from, string name = "") {
    return Begun(pins => native.receive_async(pins.First, from, Named(name)), view);
  }

  /// <summary>Returns when all ranks have called it.</summary>
  [OfC("st_communicator_barrier")]
  public void Barrier(string name = "") { native.barrier(Named(name)); }

  /// <summary>Begins <see cref="Barrier"/> in the background.</summary>
  public Pending BeginBarrier(string name = "") { return new Pending(native.barrier_async(Named(name)), Safe); }

  /// <summary>Ends the group on every rank with this reason. May be called from any thread at any time.</summary>
  [OfC("st_communicator_abort")]
  public void Abort(string reason) { native.abort(Given(reason, "reason")); }

  /// <summary>Bytes of elements sent to other ranks so far.</summary>
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

  /// <summary>Begins an operation on arrays, which stay pinned until it is done.</summary>
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
