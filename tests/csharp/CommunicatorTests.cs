using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Ranks as threads of one process: they exchange arrays in place, and if one ends, the others end too.</summary>
[TestFixture]
public class CommunicatorTests {
  private Context context;

  [SetUp]
  public void Begin() { context = new Context(); }

  [TearDown]
  public void End() { context.Dispose(); }

  [Test]
  public void RanksSplitIntoGroups() {
    Nets.OnEach(context, 4, own => {
      using (Communicator half = own.Split(own.Rank % 2, -own.Rank))
      using (Communicator twin = half.Duplicate()) {
        Assert.AreEqual(2, half.Size);
        Assert.AreEqual(1 - own.Rank / 2, twin.Rank);
        float[] value = { own.Rank };
        twin.AllReduce(value);
        Assert.AreEqual(own.Rank % 2 == 0 ? 2 : 4, value[0]);
      }
      var refused = Assert.Throws<RankFailedException>(() => own.Split(own.Rank / 3));
      StringAssert.Contains("gives color 1 alone", refused.Message);
      own.Split(own.Rank / 3, 0, true).Dispose();
    });
  }

  [Test]
  public void ThreeThreadsExchangeArrays() {
    Nets.OnEach(context, 3, own => {
      int me = own.Rank;
      float[] whole = Nets.Filled(7, me + 1), gathered = new float[7];
      own.AllReduce(whole, ReduceOp.Mean, "gradients");
      Assert.AreEqual(Nets.Filled(7, 2), whole);
      Share share = own.ShareOf(7, me);
      Assert.AreEqual(me == 0 ? 3 : 2, share.Count);
      Assert.AreEqual(5, own.ShareOf(7, 2).Begin);
      var mine = new float[share.Count];
      own.ReduceScatter(whole, mine);
      own.AllGather(mine, gathered);
      Assert.AreEqual(Nets.Filled(7, 6), gathered);
      int[] from = { me, me + 10, me + 20 }, to = new int[3];
      own.AllToAll(from, to);
      Assert.AreEqual(new[] { 10 * me, 10 * me + 1, 10 * me + 2 }, to);
      double[] told = { me, me };
      own.Broadcast(told, 1);
      Assert.AreEqual(new double[] { 1, 1 }, told);
      if (me == 0) own.Send(told, 2, "letter");
      if (me == 2) own.Receive(told, 0, "letter");
      own.Barrier();
      Assert.AreEqual(3, own.Size);
      Assert.Greater(own.SentBytes, 0);
      StringAssert.Contains("gradients", own.FlightRecord());
    });
  }

  [Test]
  public void TheAbortOfOneEndsTheOthers() {
    Nets.OnEach(context, 3, own => {
      if (own.Rank == 1) {
        own.Abort("the disk is full");
        return;
      }
      var failed = Assert.Throws<RankFailedException>(() => own.AllReduce(new float[10], name: "gradients"));
      Assert.AreEqual(1, failed.Rank);
      Assert.AreEqual("all_reduce", failed.Collective);
      Assert.AreEqual("gradients", failed.Tensor);
      Assert.IsNotEmpty(failed.Host);
      StringAssert.Contains("the disk is full", failed.Message);
      Assert.Throws<RankFailedException>(() => own.Barrier());
    });
  }

  [Test]
  public void WorkGoesOnBehindTheCallAndItsArraysStay() {
    IReadOnlyList<Communicator> ranks = Communicator.Local(context, 2);
    float[] mine = Nets.Filled(1000, 1);
    using (Pending pending = ranks[0].BeginAllReduce(mine, name: "early")) {
      Assert.IsFalse(pending.IsDone);
      GC.Collect();  // would move an unpinned array
      ranks[1].AllReduce(Nets.Filled(1000, 2));
      pending.Wait();
    }
    Assert.AreEqual(Nets.Filled(1000, 3), mine);
    var soon = new CommunicatorOptions { Deadline = TimeSpan.FromMilliseconds(100) };
    IReadOnlyList<Communicator> late = Communicator.Local(context, 2, soon);
    Assert.AreEqual(1, Assert.Throws<TimedOutException>(() => late[0].Barrier("epoch")).Rank);
    late[1].Dispose();
  }

  [Test]
  public void EveryCallGoesOnBehindItself() {
    Nets.OnEach(context, 2, own => {
      float[] a = Nets.Filled(4, 1), b = new float[2], c = new float[4], d = new float[4], letter = Nets.Filled(3, own.Rank);
      Pending[] all = { own.BeginReduceScatter(a, b), own.BeginAllGather(b, c), own.BeginAllToAll(c, d), own.BeginBroadcast(letter, 1),
                        own.Rank == 0 ? own.BeginSend(letter, 1) : own.BeginReceive(letter, 0), own.BeginBarrier() };
      foreach (Pending one in all)
        using (one) one.Wait();
      Assert.AreEqual(Nets.Filled(4, 2), d);
      Assert.AreEqual(Nets.Filled(3, 1), letter);
    });
  }

  [Test]
  public void WhatDoesNotFitIsRefused() {
    Communicator own = Communicator.Local(context, 2)[0];
    Assert.Throws<InvalidArgumentException>(() => own.AllReduce(null));
    Assert.Throws<InvalidArgumentException>(() => own.AllReduce(new[] { true }));
    Assert.Throws<InvalidArgumentException>(() => own.AllReduce(new float[2], (ReduceOp)9));
    Assert.Throws<InvalidArgumentException>(() => own.BeginReduceScatter(new float[5], new float[2]));
  }

  [Test]
  public void ProcessesMeet() {
    string job = "CommunicatorTests-" + Process.GetCurrentProcess().Id;
    var soon = new CommunicatorOptions { Start = TimeSpan.FromMilliseconds(50) };
    using (Communicator alone = Communicator.Processes(context, job, 0, 1, soon)) {
      float[] values = { 3 };
      alone.AllReduce(values);
      Assert.AreEqual(3, values[0]);
    }
    var watch = Stopwatch.StartNew();
    Assert.Throws<TimedOutException>(() => Communicator.Processes(context, job, 0, 2, soon));
    Assert.Less(watch.Elapsed, soon.Deadline, "it waits as long as Start says");
    if (Environment.GetEnvironmentVariable("RANK") == null && Environment.GetEnvironmentVariable("SLURM_PROCID") == null)
      Assert.Throws<NotFoundException>(() => Communicator.Env(context, soon));
  }

  /// <summary>A transport of the program: a queue of bytes between each ordered pair of ranks.</summary>
  private sealed class Queues : ITransport {
    private readonly Dictionary<int, Queue<byte>> queues;
    private readonly int own;
    internal volatile bool isOut;

    internal Queues(Dictionary<int, Queue<byte>> queues, int own) {
      this.queues = queues;
      this.own = own;
    }

    private Queue<byte> Between(int from, int to) {
      if (isOut) throw new InvalidOperationException("the cable is out");
      Queue<byte> found;
      if (!queues.TryGetValue(256 * from + to, out found)) queues[256 * from + to] = found = new Queue<byte>();
      return found;
    }

    public int Write(int to, byte[] bytes, int count) {
      lock (queues)
        for (int i = 0; i < count; ++i) Between(own, to).Enqueue(bytes[i]);
      return count;
    }

    public int Read(int from, byte[] bytes, int most) {
      lock (queues) {
        Queue<byte> queue = Between(from, own);
        int count = Math.Min(most, queue.Count);
        for (int i = 0; i < count; ++i) bytes[i] = queue.Dequeue();
        return count;
      }
    }
  }

  [Test]
  public void RanksReachEachOtherByTheProgramsOwnTransport() {
    var queues = new Dictionary<int, Queue<byte>>();
    var options = new CommunicatorOptions { Deadline = TimeSpan.FromSeconds(10) };
    var met = new Barrier(2);
    Nets.OnEach(context, 2, place => {
      var end = new Queues(queues, place.Rank);
      using (Communicator own = Communicator.Callbacks(context, place.Rank, 2, end, options)) {
        float[] values = Nets.Filled(5000, place.Rank + 1);
        own.AllReduce(values);
        Assert.AreEqual(Nets.Filled(5000, 3), values);
        met.SignalAndWait();
        end.isOut = true;
        RankFailedException failed = Assert.Throws<RankFailedException>(() => own.Barrier("cut"));
        StringAssert.Contains("the cable is out", failed.Message);
      }
    });
    Assert.Throws<InvalidArgumentException>(() => Communicator.Callbacks(context, 0, 2, null, options));
    Assert.Throws<InvalidArgumentException>(() => Communicator.Host(context, "../mpi", IntPtr.Zero, options));
  }
}
