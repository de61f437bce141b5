package org.scaletrain;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.scaletrain.internal.LocalRanks;

/**
 * One rank of a group that exchanges arrays: ranks are threads of this process ({@link #local}), each with one of these, or processes of
 * this machine. All ranks make the same calls in the same order; {@code name} is what errors and the flight record call an array.
 *
 * <p>Arrays are row-major without gaps, of any dtype but bool. Direct ones are exchanged where they lie, and Java's own are copied there and
 * back. The calls that begin return at once, and take direct arrays alone, which stay until the {@link Pending} is done.
 *
 * <p>Where a rank dies, leaves or aborts, the calls of the others throw {@link RankFailed} with its rank, host and collective; where one
 * does not come, {@link Timeout}. Then the group is over, and each later call says so again.
 */
public final class Communicator extends Handle {
  final org.scaletrain.internal.Communicator raw;

  private Communicator(org.scaletrain.internal.Communicator raw, Context context) {
    this.raw = raw;
    raw.keeps = context.raw;
  }

  /** The ranks of a group of threads, with all defaults. */
  public static List<Communicator> local(Context context, int ranks) {
    return local(context, ranks, new CommunicatorOptions());
  }

  /** The ranks of a group of threads, 1 to 256 of them. */
  @OfC("st_communicator_local")
  public static List<Communicator> local(Context context, int ranks, CommunicatorOptions options) {
    LocalRanks made = new LocalRanks(given(context, "Communicator.local").raw, ranks, given(options, "Communicator.local: options").raw());
    List<Communicator> all = new ArrayList<>();
    for (int rank = 0; rank < ranks; ++rank) all.add(new Communicator(made.take(rank), context));
    return all;
  }

  /** A rank of {@code size} processes of this machine, which have the text {@code job} in common; returns when all are there. */
  @OfC("st_communicator_processes")
  public static Communicator processes(Context context, String job, int rank, int size, CommunicatorOptions options) {
    return new Communicator(org.scaletrain.internal.Communicator.processes(given(context, "Communicator.processes").raw,
        given(job, "Communicator.processes: job"), rank, size, given(options, "Communicator.processes: options").raw()), context);
  }

  /** The rank that scaletrain launch, torchrun, mpirun or srun made this process. */
  @OfC("st_communicator_env")
  public static Communicator env(Context context, CommunicatorOptions options) {
    return new Communicator(org.scaletrain.internal.Communicator.env(given(context, "Communicator.env").raw,
        given(options, "Communicator.env: options").raw()), context);
  }

  /** The rank that this process is in a group of another library's: "mpi" and the address of an MPI_Comm, or 0 for MPI_COMM_WORLD. */
  @OfC("st_communicator_host")
  public static Communicator host(Context context, String transport, long group, CommunicatorOptions options) {
    return new Communicator(org.scaletrain.internal.Communicator.host_at(given(context, "Communicator.host").raw,
        given(transport, "Communicator.host: transport"), group, given(options, "Communicator.host: options").raw()), context);
  }

  /** Rank {@code rank} of {@code size} that reach each other by a transport of the program's own, which is kept until the group is over. */
  @OfC("st_communicator_callbacks")
  public static Communicator callbacks(Context context, int rank, int size, Transport transport, CommunicatorOptions options) {
    return new Communicator(org.scaletrain.internal.Communicator.callbacks(given(context, "Communicator.callbacks").raw, rank, size,
        given(transport, "Communicator.callbacks: transport"), given(options, "Communicator.callbacks: options").raw()), context);
  }

  /** This one's number, from 0. */
  @OfC("st_communicator_rank")
  public int rank() {
    return raw.rank();
  }

  /** How many ranks the group has. */
  @OfC("st_communicator_size")
  public int size() {
    return raw.size();
  }

  /** Which of so many elements are a rank's in {@link #reduceScatter} and {@link #allGather}. */
  @OfC("st_communicator_share")
  public Share share(long elements, int rank) {
    long begin = raw.share_begin(elements, rank);
    return new Share(begin, raw.share_end(elements, rank) - begin);
  }

  /** The sum of all ranks, in place. */
  public void allReduce(Array view) {
    allReduce(view, ReduceOp.SUM, "");
  }

  /** The array becomes that of all ranks reduced. */
  @OfC("st_communicator_all_reduce")
  public void allReduce(Array view, ReduceOp op, String name) {
    raw.all_reduce(view, number(op), named(name));
  }

  /** {@link #allReduce} behind the call. */
  public Pending beginAllReduce(Array view, ReduceOp op, String name) {
    held("beginAllReduce", view);
    return begun(raw.all_reduce_async(view, number(op), named(name)), view);
  }

  /** {@code own} gets this rank's share of all ranks' {@code whole} reduced; it may be that part of it. */
  @OfC("st_communicator_reduce_scatter")
  public void reduceScatter(Array whole, Array own, ReduceOp op, String name) {
    raw.reduce_scatter(whole, own, number(op), named(name));
  }

  /** {@link #reduceScatter} behind the call. */
  public Pending beginReduceScatter(Array whole, Array own, ReduceOp op, String name) {
    held("beginReduceScatter", whole);
    held("beginReduceScatter", own);
    return begun(raw.reduce_scatter_async(whole, own, number(op), named(name)), whole, own);
  }

  /** {@code whole} gets every rank's share, {@code own}, which may be that part of it. */
  @OfC("st_communicator_all_gather")
  public void allGather(Array own, Array whole, String name) {
    raw.all_gather(own, whole, named(name));
  }

  /** {@link #allGather} behind the call. */
  public Pending beginAllGather(Array own, Array whole, String name) {
    held("beginAllGather", own);
    held("beginAllGather", whole);
    return begun(raw.all_gather_async(own, whole, named(name)), own, whole);
  }

  /** Of as many equal parts as there are ranks, part i goes to rank i, and its part for us becomes part i of {@code to}. */
  @OfC("st_communicator_all_to_all")
  public void allToAll(Array from, Array to, String name) {
    raw.all_to_all(from, to, named(name));
  }

  /** {@link #allToAll} behind the call. */
  public Pending beginAllToAll(Array from, Array to, String name) {
    held("beginAllToAll", from);
    held("beginAllToAll", to);
    return begun(raw.all_to_all_async(from, to, named(name)), from, to);
  }

  /** All get the array that rank {@code root} has, whose own may be read-only. */
  @OfC("st_communicator_broadcast")
  public void broadcast(Array view, int root, String name) {
    if (root == rank())
      raw.broadcast_own(view, root, named(name));
    else
      raw.broadcast(view, root, named(name));
  }

  /** {@link #broadcast} behind the call. */
  public Pending beginBroadcast(Array view, int root, String name) {
    held("beginBroadcast", view);
    return begun(
        root == rank() ? raw.broadcast_own_async(view, root, named(name)) : raw.broadcast_async(view, root, named(name)), view);
  }

  /** To one other rank, which receives as many elements. */
  @OfC("st_communicator_send")
  public void send(Array view, int to, String name) {
    raw.send(view, to, named(name));
  }

  /** {@link #send} behind the call. */
  public Pending beginSend(Array view, int to, String name) {
    held("beginSend", view);
    return begun(raw.send_async(view, to, named(name)), view);
  }

  /** What rank {@code from} sends. */
  @OfC("st_communicator_receive")
  public void receive(Array view, int from, String name) {
    raw.receive(view, from, named(name));
  }

  /** {@link #receive} behind the call. */
  public Pending beginReceive(Array view, int from, String name) {
    held("beginReceive", view);
    return begun(raw.receive_async(view, from, named(name)), view);
  }

  /** Returns when all ranks are here. */
  public void barrier() {
    barrier("");
  }

  /** The same, with a name for errors. */
  @OfC("st_communicator_barrier")
  public void barrier(String name) {
    raw.barrier(named(name));
  }

  /** {@link #barrier} behind the call. */
  public Pending beginBarrier(String name) {
    return begun(raw.barrier_async(named(name)));
  }

  /** Ends the group, on every rank, with this reason. From any thread at any time. */
  @OfC("st_communicator_abort")
  public void abort(String reason) {
    raw.abort(given(reason, "Communicator.abort"));
  }

  /** Of elements, to other ranks, so far. */
  @OfC("st_communicator_sent_bytes")
  public long sentBytes() {
    return raw.sent_bytes();
  }

  /** This rank's last calls, oldest first. */
  @OfC("st_communicator_flight_record")
  @SuppressWarnings("unchecked")
  public List<Map<String, Object>> flightRecord() {
    return (List<Map<String, Object>>) Json.parse(raw.flight_record());
  }

  /** Leaves the group, when what was begun is done. */
  @Override
  @OfC("st_communicator_destroy")
  public void close() {
    raw.close();
  }

  private static int number(ReduceOp op) {
    return given(op, "Communicator: op").number();
  }

  private static String named(String name) {
    return given(name, "Communicator: name");
  }

  private static void held(String call, Array array) {
    given(array, "Communicator." + call).held("Communicator." + call, "the array");
  }

  private Pending begun(org.scaletrain.internal.Pending made, Array... arrays) {
    return Pending.lending(made, new Object[] {raw, arrays});
  }
}
