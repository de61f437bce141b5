"""Ranks as threads of one process: they exchange arrays in place, and if one ends, the others end too."""

import collections
import gc
import io
import os
import threading
import weakref

import numpy
import pytest

import scaletrain as st
from nets import ROWS, mlp, on_each, sine

F32 = numpy.float32


@pytest.fixture
def context():
    with st.Context() as made:
        yield made


def test_three_threads_exchange_arrays(context):
    def act(own):
        me = own.rank
        grads = numpy.full(7, me + 1, F32)
        own.all_reduce(grads, "mean", name="gradients")
        assert grads.tolist() == [2] * 7
        share = own.share(7)
        assert (share, own.share(7, 2)) == ([range(0, 3), range(3, 5), range(5, 7)][me], range(5, 7))
        own.reduce_scatter(grads, grads[share.start : share.stop])
        own.all_gather(grads[share.start : share.stop], grads)
        assert grads.tolist() == [6] * 7
        to = numpy.zeros(3, numpy.int32)
        own.all_to_all(numpy.arange(3, dtype=numpy.int32) * 10 + me, to)
        assert to.tolist() == [me * 10, me * 10 + 1, me * 10 + 2]
        told = numpy.full(4, me, numpy.float64)
        own.broadcast(told, 1)
        assert told.tolist() == [1] * 4
        if me == 0:
            own.send(told, 2)
        if me == 2:
            own.receive(told, 0, name="letter")
        own.barrier()
        assert own.size == 3 and own.sent_bytes > 0
        assert own.flight_record()[0]["label"] == "gradients"

    on_each(st.Communicator.local(context, 3), act)


def test_ranks_split_into_groups(context):
    def act(own):
        half = own.split(own.rank % 2, -own.rank, deadline=20)
        twin = half.duplicate()
        assert (half.size, half.rank, twin.rank) == (2, 1 - own.rank // 2, half.rank)
        value = numpy.full(1, own.rank, F32)
        twin.all_reduce(value)
        assert value.tolist() == [[2], [4]][own.rank % 2]
        with pytest.raises(st.RankError, match="gives color 1 alone") as caught:
            own.split(own.rank // 3)
        assert caught.value.rank == 3
        assert own.split(own.rank // 3, allow_single=True).size == (1 if own.rank == 3 else 3)

    on_each(st.Communicator.local(context, 4), act)


def test_the_abort_of_one_ends_the_others(context):
    def act(own):
        if own.rank == 1:
            own.abort("the disk is full")
            return
        with pytest.raises(st.RankError, match="the disk is full") as caught:
            own.all_reduce(numpy.ones(10, F32), name="gradients")
        error = caught.value
        assert (error.rank, error.collective, error.tensor, error.status) == (1, "all_reduce", "gradients", "rank_failed")
        assert error.host
        with pytest.raises(st.RankError, match="the disk is full"):
            own.barrier()

    on_each(st.Communicator.local(context, 3), act)


def test_a_with_block_that_ends_by_an_exception_ends_the_group(context):
    def act(own):
        if own.rank == 1:
            with pytest.raises(ValueError, match="bad"), own:
                raise ValueError("bad row\0\ud800")
        else:
            with pytest.raises(st.RankError, match=r"ValueError: bad row\?\?") as caught, own:
                own.barrier()
            assert caught.value.rank == 1

    on_each(st.Communicator.local(context, 2), act)


def test_work_goes_on_behind_the_call(context):
    first, second = st.Communicator.local(context, 2)
    a, b = numpy.full(1000, 1, F32), numpy.full(1000, 2, F32)
    pending = first.all_reduce_async(a, name="early")
    assert not pending.done()
    second.all_reduce(b)
    pending.result()
    assert pending.done() and a[0] == b[0] == 3
    first, _second = st.Communicator.local(context, 2, deadline=0.1)
    with pytest.raises(st.Timeout, match="rank 1") as caught:
        first.barrier(name="epoch")
    assert caught.value.rank == 1


def test_every_call_goes_on_behind_itself(context):
    def act(own):
        a, b, c, d = numpy.ones(4, F32), numpy.zeros(2, F32), numpy.zeros(4, F32), numpy.zeros(4, F32)
        letter, note = (numpy.full(3, own.rank, F32) for _ in range(2))
        exchange = own.send_async(note, 1) if own.rank == 0 else own.receive_async(note, 0)
        for pending in (exchange, own.reduce_scatter_async(a, b), own.all_gather_async(b, c), own.all_to_all_async(c, d),
                        own.broadcast_async(letter, 1), own.barrier_async()):  # fmt: skip
            pending.result()
        assert c.tolist() == d.tolist() == [2] * 4 and letter.tolist() == [1] * 3 and note.tolist() == [0] * 3

    on_each(st.Communicator.local(context, 2), act)


def test_an_array_stays_until_the_work_on_it_is_done(context):
    class Watched(numpy.ndarray):
        pass

    first, second = st.Communicator.local(context, 2)
    array = numpy.ones(1000, F32).view(Watched)
    watch = weakref.ref(array)
    pending = first.all_reduce_async(array)
    del array
    gc.collect()
    assert watch() is not None
    second.all_reduce(numpy.ones(1000, F32))
    pending.result()
    pending.close()
    gc.collect()
    assert watch() is None


def test_a_pending_that_is_dropped_has_waited(context):
    first, second = st.Communicator.local(context, 2)
    array = numpy.ones(1000, F32)
    other = threading.Timer(0.05, lambda: second.all_reduce(numpy.ones(1000, F32)))
    pending = first.all_reduce_async(array)
    other.start()
    del pending
    assert array[0] == 2
    other.join()


def test_what_does_not_fit_is_refused(context):
    own, _peer = st.Communicator.local(context, 2)
    for array, error, words in (
        (numpy.ones((4, 4), F32)[:, ::2], st.Unsupported, "gaps"),
        (b"four", st.InvalidArgument, "is read-only"),
        (numpy.array([True]), st.InvalidArgument, "bool"),
    ):
        with pytest.raises(error, match=words):
            own.all_reduce(array, "mean")
    with pytest.raises(st.InvalidArgument, match="sum, mean, max, min"):
        own.all_reduce(numpy.ones(2, F32), "product")


def test_processes_meet(context):
    job = f"test_communicator-{os.getpid()}"
    array = numpy.ones(3, F32)
    st.Communicator.processes(context, job, 0, 1).all_reduce(array)
    assert array.tolist() == [1, 1, 1]
    with pytest.raises(st.Timeout):
        st.Communicator.processes(context, job, 0, 2, start=0.05)
    if not {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"} & os.environ.keys():
        with pytest.raises(st.NotFound, match="scaletrain launch"):
            st.Communicator.env(context)


def test_sharded_weights_and_state_are_read_by_collective_calls(context, tmp_path):
    keys = {"batch": 16, "micro_batches": 4, "lr": 0.01, "warmup": 0, "zero": 3, "ema_decay": 0.5}
    alone = mlp(context)
    trainer_alone = st.Trainer(alone, keys)
    trainer_alone.step(sine())
    name = alone.parameters[0].name
    stream = io.BytesIO()
    alone.write(stream)
    # One thread at a time may be in an object, so before the ranks' threads begin.
    weights, gradient, average = alone.get(name), trainer_alone.gradient(name), trainer_alone.average(name)
    digest, digest_of_state = alone.digest(), trainer_alone.digest()

    def act(own):
        model = mlp(context)
        trainer = st.Trainer(model, keys, communicator=own)
        rows = [row for row in range(ROWS) if row // 16 % 2 == own.rank]
        trainer.step({key: values[rows] for key, values in sine().items()})
        with pytest.raises(st.WrongState, match=r"\(zero 3\)\. Call Model\.digest_collective on all ranks"):
            model.digest()
        refused = [model.clone, lambda: st.Predictor(model), trainer.digest, lambda: trainer.gradient(name), lambda: trainer.average(name)]
        for call in (*refused, lambda: model.write(io.BytesIO()), lambda: model.write_file(tmp_path / "local")):
            with pytest.raises(st.WrongState, match="collective on all ranks"):
                call()
        assert numpy.array_equal(model.get_collective(name), weights)
        assert numpy.array_equal(trainer.gradient_collective(name), gradient)
        assert numpy.array_equal(trainer.average_collective(name), average)
        assert model.digest_collective() == model.clone_collective().digest() == digest
        assert trainer.digest_collective() == trainer.digest() == digest_of_state
        written = io.BytesIO()
        model.write_collective(written)
        assert written.getvalue() == stream.getvalue()
        model.write_file_collective(tmp_path / f"rank{own.rank}")
        st.Predictor.collective(model).refresh()

    on_each(st.Communicator.local(context, 2), act)
    assert (tmp_path / "rank0").read_bytes() == stream.getvalue()
    assert not (tmp_path / "rank1").exists() and not (tmp_path / "local").exists()


def test_late_parameters_are_made_where_they_are_asked_for():
    late = st.Context(late_parameters=True)
    model = mlp(late)
    assert not any(use.bytes for use in late.memory().roles if use.role == "parameters")
    model.digest()
    assert any(use.bytes for use in late.memory().roles if use.role == "parameters")


class Queues:
    """A transport of the program: a queue of bytes between each ordered pair of ranks."""

    def __init__(self, queues, own):
        self.queues, self.own = queues, own

    def write(self, to, data):
        if self.queues is None:
            raise ConnectionError("the cable is out")
        self.queues[self.own, to].extend(data)
        return len(data)

    def read(self, source, most):
        if self.queues is None:
            raise ConnectionError("the cable is out")
        queue = self.queues[source, self.own]
        return bytes(queue.popleft() for _ in range(min(most, len(queue))))


def test_ranks_reach_each_other_by_the_programs_own_transport(context):
    queues = collections.defaultdict(collections.deque)
    ends = [Queues(queues, rank) for rank in range(3)]
    kept = weakref.ref(ends[1])

    def act(rank):
        with st.Communicator.callbacks(context, rank, 3, ends[rank], deadline=20) as own:
            values = numpy.full(5000, rank + 1, F32)
            own.all_reduce(values)
            assert values.tolist() == [6] * 5000
            own.barrier()

    on_each(range(3), act)
    ends.clear()
    gc.collect()
    assert kept() is None  # nothing refers to it any more


def test_what_a_transport_raises_is_the_reason_of_the_end(context):
    with pytest.raises(st.RankError, match="cable is out"):
        st.Communicator.callbacks(context, 0, 2, Queues(None, 0), deadline=2).barrier()
    with pytest.raises(AttributeError):
        st.Communicator.callbacks(context, 0, 2, object())


def test_a_group_of_another_library_needs_its_plugin(context, monkeypatch):
    monkeypatch.setenv("SCALETRAIN_PLUGINS", "/nowhere")
    with pytest.raises(st.Unavailable, match="/nowhere/libscaletrain_mpi.so"):
        st.Communicator.host(context, "mpi", 0)
