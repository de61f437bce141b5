package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** Ranks as threads of one process: they exchange arrays, and if one ends, the others end too. */
class CommunicatorTest {
  private final Context context = new Context();

  @AfterEach
  void end() {
    context.close();
  }

  private static float[] full(int size, float value) {
    float[] all = new float[size];
    Arrays.fill(all, value);
    return all;
  }

  @Test
  void ranksSplitIntoGroups() throws Exception {
    Nets.onEach(Communicator.local(context, 4), own -> {
      try (Communicator half = own.split(own.rank() % 2, -own.rank(), false); Communicator twin = half.duplicate()) {
        assertEquals(2, half.size());
        assertEquals(1 - own.rank() / 2, twin.rank());
        float[] value = {own.rank()};
        twin.allReduce(Array.of(value));
        assertEquals(own.rank() % 2 == 0 ? 2 : 4, value[0]);
      }
      RankFailed refused = assertThrows(RankFailed.class, () -> own.split(own.rank() / 3, 0, false));
      assertTrue(refused.getMessage().contains("gives color 1 alone"), refused.getMessage());
      own.split(own.rank() / 3, 0, true).close();
      return null;
    });
  }

  @Test
  void threeThreadsExchangeArrays() throws Exception {
    Nets.onEach(Communicator.local(context, 3), own -> {
      int me = own.rank();
      float[] heap = full(7, me + 1);
      own.allReduce(Array.of(heap), ReduceOp.MEAN, "gradients");
      assertArrayEquals(full(7, 2), heap);
      Array whole = Nets.filled(7, 2);
      Share share = own.share(7, me);
      assertEquals(new Share(5, 2), own.share(7, 2));
      Array mine = Nets.filled((int) share.count(), 0);
      own.reduceScatter(whole, mine, ReduceOp.SUM, "");
      float[] gathered = new float[7];
      own.allGather(mine, Array.of(gathered), "");
      assertArrayEquals(full(7, 6), gathered);
      assertArrayEquals(full(7, 2), whole.toFloats());
      int[] from = {me, me + 10, me + 20};
      int[] to = new int[3];
      own.allToAll(Array.of(from), Array.of(to), "");
      assertArrayEquals(new int[] {10 * me, 10 * me + 1, 10 * me + 2}, to);
      double[] told = {me, me};
      own.broadcast(me == 1 ? Array.of(told).readOnly() : Array.of(told), 1, "");
      assertArrayEquals(new double[] {1, 1}, told);
      Array begun = Nets.filled(3, me);
      own.beginBroadcast(me == 1 ? begun.readOnly() : begun, 1, "").await();
      assertArrayEquals(full(3, 1), begun.toFloats());
      if (me == 0) own.send(Array.of(told).readOnly(), 2, "letter");
      if (me == 2) own.receive(Array.of(told), 0, "letter");
      own.barrier();
      assertEquals(3, own.size());
      assertTrue(own.sentBytes() > 0);
      assertEquals("gradients", own.flightRecord().get(0).get("label"));
      return null;
    });
  }

  @Test
  void theAbortOfOneEndsTheOthers() throws Exception {
    Nets.onEach(Communicator.local(context, 3), own -> {
      if (own.rank() == 1) {
        own.abort("the disk is full");
        return null;
      }
      RankFailed failed = assertThrows(RankFailed.class, () -> own.allReduce(Nets.filled(10, 1), ReduceOp.SUM, "gradients"));
      assertEquals(1, failed.rank());
      assertEquals("all_reduce", failed.collective());
      assertEquals("gradients", failed.tensor());
      assertFalse(failed.host().isEmpty());
      assertTrue(failed.getMessage().contains("the disk is full"), failed.getMessage());
      assertThrows(RankFailed.class, own::barrier);
      return null;
    });
  }

  @Test
  void workGoesOnBehindTheCall() {
    List<Communicator> ranks = Communicator.local(context, 2);
    Array mine = Nets.filled(1000, 1);
    try (Pending pending = ranks.get(0).beginAllReduce(mine, ReduceOp.SUM, "early")) {
      assertFalse(pending.isDone());
      ranks.get(1).allReduce(Nets.filled(1000, 2));
      pending.await();
    }
    assertArrayEquals(full(1000, 3), mine.toFloats());
    CommunicatorOptions soon = new CommunicatorOptions().deadline(Duration.ofMillis(100));
    List<Communicator> late = Communicator.local(context, 2, soon);
    assertEquals(1, assertThrows(Timeout.class, late.get(0)::barrier).rank());
    late.get(1).close();
  }

  @Test
  void everyCallGoesOnBehindItself() throws Exception {
    Nets.onEach(Communicator.local(context, 2), own -> {
      Array a = Nets.filled(4, 1);
      Array b = Nets.filled(2, 0);
      Array c = Nets.filled(4, 0);
      Array d = Nets.filled(4, 0);
      Array letter = Nets.filled(3, own.rank());
      List<Pending> all = List.of(own.beginReduceScatter(a, b, ReduceOp.SUM, ""), own.beginAllGather(b, c, ""), own.beginAllToAll(c, d, ""),
          own.beginBroadcast(letter, 1, ""), own.rank() == 0 ? own.beginSend(letter, 1, "") : own.beginReceive(letter, 0, ""),
          own.beginBarrier(""));
      for (Pending one : all) one.await();
      assertArrayEquals(full(4, 2), d.toFloats());
      assertArrayEquals(full(3, 1), letter.toFloats());
      return null;
    });
  }

  /** If the arrays were freed too early, the library would write to freed memory and crash the JVM. */
  @Test
  void arraysStayUntilTheWorkOnThemIsDone() {
    List<Communicator> ranks = Communicator.local(context, 2);
    for (int i = 0; i < 20; ++i) ranks.get(0).beginAllReduce(Nets.filled(1 << 18, 1), ReduceOp.SUM, "");  // array and Pending are unreachable at once
    System.gc();
    System.gc();
    Array last = Nets.filled(1 << 18, 1);
    for (int i = 0; i < 20; ++i) ranks.get(1).allReduce(last);
    assertEquals(21, last.floats().get(0));
  }

  @Test
  void whatDoesNotFitIsRefused() {
    Communicator own = Communicator.local(context, 2).get(0);
    Array four = Nets.filled(4, 1);
    assertThrows(Unsupported.class, () -> own.allReduce(Nets.filled(16, 1).strided(new long[] {4, 2}, 4, 2)));
    assertThrows(InvalidArgument.class, () -> own.allReduce(four.readOnly()));
    assertThrows(InvalidArgument.class, () -> own.allReduce(null));
    assertThrows(InvalidArgument.class, () -> own.allReduce(four, null, ""));
    assertThrows(InvalidArgument.class, () -> own.beginAllReduce(Array.of(new float[2]), ReduceOp.SUM, ""), "Java may move it");
  }

  @Test
  void processesMeet() {
    String job = "CommunicatorTest-" + ProcessHandle.current().pid();
    CommunicatorOptions soon = new CommunicatorOptions().start(Duration.ofMillis(50));
    try (Communicator alone = Communicator.processes(context, job, 0, 1, soon)) {
      float[] values = {3};
      alone.allReduce(Array.of(values));
      assertEquals(3, values[0]);
    }
    assertThrows(Timeout.class, () -> Communicator.processes(context, job, 0, 2, soon));
    if (System.getenv("RANK") == null && System.getenv("SLURM_PROCID") == null)
      assertThrows(NotFound.class, () -> Communicator.env(context, soon));
  }

  /** A transport of the program: a queue of bytes between each ordered pair of ranks. */
  private static final class Queues implements Transport {
    private final Map<String, ArrayDeque<Byte>> queues;
    private final int own;
    volatile boolean isOut;

    Queues(Map<String, ArrayDeque<Byte>> queues, int own) {
      this.queues = queues;
      this.own = own;
    }

    private ArrayDeque<Byte> queue(int from, int to) throws IOException {
      if (isOut) throw new IOException("the cable is out");
      return queues.computeIfAbsent(from + "-" + to, name -> new ArrayDeque<>());
    }

    @Override
    public int write(int to, byte[] bytes, int count) throws IOException {
      synchronized (queues) {
        for (int i = 0; i < count; ++i) queue(own, to).add(bytes[i]);
      }
      return count;
    }

    @Override
    public int read(int from, byte[] bytes, int most) throws IOException {
      synchronized (queues) {
        ArrayDeque<Byte> queue = queue(from, own);
        int count = Math.min(most, queue.size());
        for (int i = 0; i < count; ++i) bytes[i] = queue.remove();
        return count;
      }
    }
  }

  @Test
  void ranksReachEachOtherByTheProgramsOwnTransport() throws Exception {
    Map<String, ArrayDeque<Byte>> queues = new HashMap<>();
    CommunicatorOptions soon = new CommunicatorOptions().deadline(Duration.ofSeconds(10));
    CyclicBarrier met = new CyclicBarrier(2);
    Nets.onEach(Communicator.local(context, 2), place -> {
      Queues end = new Queues(queues, place.rank());
      try (Communicator own = Communicator.callbacks(context, place.rank(), 2, end, soon)) {
        float[] values = full(5000, place.rank() + 1);
        own.allReduce(Array.of(values));
        assertArrayEquals(full(5000, 3), values);
        met.await();
        end.isOut = true;
        RankFailed failed = assertThrows(RankFailed.class, () -> own.barrier());
        assertTrue(failed.getMessage().contains("the cable is out"), failed.getMessage());
      }
      return null;
    });
    assertThrows(InvalidArgument.class, () -> Communicator.callbacks(context, 0, 2, null, soon));
    assertThrows(InvalidArgument.class, () -> Communicator.host(context, "../mpi", 0, soon));
  }
}
