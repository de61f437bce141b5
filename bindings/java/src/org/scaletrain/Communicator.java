package org.scaletrain;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.scaletrain.internal.LocalRanks;

/**
 * One rank of a group that exchanges arrays. Ranks are threads of this process ({@link #local}), each with its own Communicator, or
 * processes. All ranks make the same calls in the same order. {@code name} identifies an array in errors and in the flight record.
 *
 * <p>Arrays are row-major without gaps, of any dtype except bool. Direct arrays are exchanged in place; heap arrays are copied in and out.
 * The {@code begin} calls return at once and take only direct arrays, which stay alive until the {@link Pending} is done.
 *
 * <p>If a rank dies, leaves or aborts, the calls of the other ranks throw {@link RankFailed} with its rank, host and collective. If a rank
 * does not arrive in time, they throw {@link Timeout}. After either, the group is over and each later call throws the same error.
 */
public final class Communicator extends Handle {
  final org.scaletrain.internal.Communicator raw;

  private Communicator(org.scaletrain.internal.Communicator raw, Context context) {
    this(raw, (Object) context.raw);
  }

  private Communicator(org.scaletrain.internal.Communicator raw, Object keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** Creates the ranks of a group of threads, with all defaults. */
  public static List<Communicator> local(Context context, int ranks) {
    return local(context, ranks, new CommunicatorOptions());
  }

  /** Creates the ranks of a group of threads, 1 to 256. Give each to its own thread. */
  @OfC("st_communicator_local")
  public static List<Communicator> local(Context context, int ranks, CommunicatorOptions options) {
    LocalRanks made = new LocalRanks(given(context, "Communicator.local").raw, ranks, given(options, "Communicator.local: options").raw());
    List<Communicator> all = new ArrayList<>();
    for (int rank = 0; rank < ranks; ++rank) all.add(new Communicator(made.take(rank), context));
    return all;
  }

  /** Joins a group of {@code size} processes on this machine that all pass the same {@code job}. Returns when all have joined. */
  @OfC("st_communicator_processes")
  public static Communicator processes(Context context, String job, int rank, int size, CommunicatorOptions options) {
    return new Communicator(org.scaletrain.internal.Communicator.processes(given(context, "Communicator.processes").raw,
        given(job, "Communicator.processes: job"), rank, size, given(options, "Communicator.processes: options").raw()), context);
  }

  /** Joins as the rank that the launcher assigned to this process: scaletrain launch, torchrun, mpirun or srun. */
  @OfC("st_communicator_env")
  public static Communicator env(Context context, CommunicatorOptions options) {
    return new Communicator(org.scaletrain.internal.Communicator.env(given(context, "Communicator.env").raw,
        given(options, "Communicator.env: options").raw()), context);
  }

  /** Joins as this process's rank in a group of another library: "mpi" and the address of an MPI_Comm, or 0 for MPI_COMM_WORLD. */
  @OfC("st_communicator_host")
  public static Communicator host(Context context, String transport, long group, CommunicatorOptions options) {
    return new Communicator(org.scaletrain.internal.Communicator.host_at(given(context, "Communicator.host").raw,
        given(transport, "Communicator.host: transport"), group, given(options, "Communicator.host: options").raw()), context);
  }

  /** Joins as rank {@code rank} of {@code size} over the program's own transport, which is kept until the group is over. */
  @OfC("st_communicator_callbacks")
  public static Communicator callbacks(Context context, int rank, int size, Transport transport, CommunicatorOptions options) {
    return new Communicator(org.scaletrain.internal.Communicator.callbacks(given(context, "Communicator.callbacks").raw, rank, size,
        given(transport, "Communicator.callbacks: transport"), given(options, "Communicator.callbacks: options").raw()), context);
  }

  /**
   * Makes groups of the ranks that give the same color, ordered by key, then by rank. All ranks make this call. The deadline is this group's;
   * with {@code allowSingle} a color that only this rank gives makes a group of one rank instead of an error.
   */
  @OfC("st_communicator_split")
  public Communicator split(int color, int key, boolean allowSingle) {
    return new Communicator(
        raw.split(color, key, new CommunicatorOptions().deadline(Duration.ZERO).allowSingle(allowSingle).raw()), raw.keeps);
  }

  /** Makes a group of the same ranks, for calls in an order of their own, as from another thread. All ranks make this call. */
  @OfC("st_communicator_duplicate")
  public Communicator duplicate() {
    return new Communicator(raw.duplicate(new CommunicatorOptions().deadline(Duration.ZERO).raw()), raw.keeps);
  }

  /** This rank's number, from 0. */
  @OfC("st_communicator_rank")
  public int rank() {
    return raw.rank();
  }

  /** Number of ranks in the group. */
  @OfC("st_communicator_size")
  public int size() {
    return raw.size();
  }

  /** The shard of an array of {@code elements} that {@code rank} has in {@link #reduceScatter} and {@link #allGather}. */
  @OfC("st_communicator_share")
  public Share share(long elements, int rank) {
    long begin = raw.share_begin(elements, rank);
    return new Share(begin, raw.share_end(elements, rank) - begin);
  }

  /** Sums the array over all ranks, in place. */
  public void allReduce(Array view) {
    allReduce(view, ReduceOp.SUM, "");
  }

  /** Reduces the array over all ranks, in place. */
  @OfC("st_communicator_all_reduce")
  public void allReduce(Array view, ReduceOp op, String name) {
    raw.all_reduce(view, number(op), named(name));
  }

  /** Begins {@link #allReduce} in the background. */
  public Pending beginAllReduce(Array view, ReduceOp op, String name) {
    held("beginAllReduce", view);
    return begun(raw.all_reduce_async(view, number(op), named(name)), view);
  }

  /** Reduces {@code whole} over all ranks and writes this rank's shard to {@code own}, which may be that shard of {@code whole}. */
  @OfC("st_communicator_reduce_scatter")
  public void reduceScatter(Array whole, Array own, ReduceOp op, String name) {
    raw.reduce_scatter(whole, own, number(op), named(name));
  }

  /** Begins {@link #reduceScatter} in the background. */
  public Pending beginReduceScatter(Array whole, Array own, ReduceOp op, String name) {
    held("beginReduceScatter", whole);
    held("beginReduceScatter", own);
    return begun(raw.reduce_scatter_async(whole, own, number(op), named(name)), whole, own);
  }

  /** Collects every rank's shard {@code own} in {@code whole}. {@code own} may be that shard of {@code whole}. */
  @OfC("st_communicator_all_gather")
  public void allGather(Array own, Array whole, String name) {
    raw.all_gather(own, whole, named(name));
  }

  /** Begins {@link #allGather} in the background. */
  public Pending beginAllGather(Array own, Array whole, String name) {
    held("beginAllGather", own);
    held("beginAllGather", whole);
    return begun(raw.all_gather_async(own, whole, named(name)), own, whole);
  }

  /**
   * Both arrays consist of one equal block per rank. Block i of {@code from} goes to rank i, and the block from rank i arrives in block i of
   * {@code to}.
   */
  @OfC("st_communicator_all_to_all")
  public void allToAll(Array from, Array to, String name) {
    raw.all_to_all(from, to, named(name));
  }

  /** Begins {@link #allToAll} in the background. */
  public Pending beginAllToAll(Array from, Array to, String name) {
    held("beginAllToAll", from);
    held("beginAllToAll", to);
    return begun(raw.all_to_all_async(from, to, named(name)), from, to);
  }

  /** Copies the array of rank {@code root} to all ranks. On {@code root} it may be read-only. */
  @OfC("st_communicator_broadcast")
  public void broadcast(Array view, int root, String name) {
    if (root == rank())
      raw.broadcast_own(view, root, named(name));
    else
      raw.broadcast(view, root, named(name));
  }

  /** Begins {@link #broadcast} in the background. */
  public Pending beginBroadcast(Array view, int root, String name) {
    held("beginBroadcast", view);
    return begun(
        root == rank() ? raw.broadcast_own_async(view, root, named(name)) : raw.broadcast_async(view, root, named(name)), view);
  }

  /** Sends the array to one other rank, which must receive the same number of elements. */
  @OfC("st_communicator_send")
  public void send(Array view, int to, String name) {
    raw.send(view, to, named(name));
  }

  /** Begins {@link #send} in the background. */
  public Pending beginSend(Array view, int to, String name) {
    held("beginSend", view);
    return begun(raw.send_async(view, to, named(name)), view);
  }

  /** Receives the array that rank {@code from} sends. */
  @OfC("st_communicator_receive")
  public void receive(Array view, int from, String name) {
    raw.receive(view, from, named(name));
  }

  /** Begins {@link #receive} in the background. */
  public Pending beginReceive(Array view, int from, String name) {
    held("beginReceive", view);
    return begun(raw.receive_async(view, from, named(name)), view);
  }

  /** Returns when all ranks have called it. */
  public void barrier() {
    barrier("");
  }

  /** The same, with a name for errors. */
  @OfC("st_communicator_barrier")
  public void barrier(String name) {
    raw.barrier(named(name));
  }

  /** Begins {@link #barrier} in the background. */
  public Pending beginBarrier(String name) {
    return begun(raw.barrier_async(named(name)));
  }

  /** Ends the group on every rank with this reason. May be called from any thread at any time. */
  @OfC("st_communicator_abort")
  public void abort(String reason) {
    raw.abort(given(reason, "Communicator.abort"));
  }

  /** Bytes of elements sent to other ranks so far. */
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

  /** Waits for the operations that were begun, then leaves the group. */
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
