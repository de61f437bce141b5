"""An optimizer in shards on ranks, from Python."""

import threading

import numpy
import pytest

import scaletrain as st


def on_ranks(count, act):
    failures = []

    def run(own):
        try:
            act(own)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    with st.Context() as context:
        threads = [threading.Thread(target=run, args=(rank,)) for rank in st.Communicator.local(context, count, deadline=20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


@pytest.mark.parametrize("stage", [1, 2])
def test_each_rank_has_the_update_by_the_mean_of_all(stage):
    def act(own):
        w, v = numpy.ones(5, numpy.float32), numpy.ones(3, numpy.float64)
        g = [numpy.full(5, own.rank, numpy.float32), numpy.full(3, 2.0)]
        half = numpy.zeros(5, numpy.float16)
        with st.ShardedOptimizer(own, {"w": w, "v": v}, stage=stage, optimizer="sgd", lr=0.5) as sharded:
            report = sharded.step(g)
            assert (report.step, report.skipped, w.tolist(), v.tolist()) == (1, False, [0.5] * 5, [0.0] * 3)
            sharded.keep_copies([half, None])
            sharded.set("lr", 1.0)
            g = [numpy.ones(5, numpy.float32), numpy.zeros(3)]
            if stage == 2:
                for i in (1, 0):
                    sharded.gradient_ready(i, g[i])
                sharded.step()
            else:
                with pytest.raises(st.WrongState, match="stage 1"):
                    sharded.gradient_ready(0, g[0])
                sharded.step(g)
            assert w.tolist() == half.tolist() == [-0.5] * 5

    on_ranks(3, act)


def test_masters_in_pieces_are_whole_where_the_state_is_gathered():
    def act(own):
        w = numpy.ones(2048, numpy.float32)
        half = numpy.zeros(2048, numpy.float16)
        with st.ShardedOptimizer(own, {"w": w}, masters_in_pieces=True, optimizer="sgd", lr=0.5) as sharded:
            sharded.keep_copies([half])
            sharded.step([numpy.ones(2048, numpy.float32)])
            assert (half == 0.5).all()
            assert (w == 0.5).sum() == (w == 1).sum() == 1024
            sharded.gather_state()
            assert (w == 0.5).all()

    on_ranks(2, act)


def test_one_ranks_overflow_skips_on_all():
    def act(own):
        w = numpy.ones(4, numpy.float32)
        with st.Context() as context, st.ShardedOptimizer(own, {"w": w}) as sharded, st.LossScaler(context) as scaler:
            g = numpy.full(4, scaler.scale, numpy.float32)
            if own.rank == 1:
                g[3] = numpy.inf
            assert sharded.step([g], scaler=scaler).skipped
            assert scaler.update()
            assert (w.tolist(), scaler.scale) == ([1.0] * 4, 32768.0)

    on_ranks(2, act)


def test_its_state_goes_to_another_number_of_ranks():
    states = {}

    def first(own):
        w = numpy.ones(1030, numpy.float32)
        with st.ShardedOptimizer(own, {"w": w}, optimizer="adamw") as sharded:
            sharded.step([numpy.ones(1030, numpy.float32)])
            state = sharded.gather_state(0)
            assert (len(state) == 3) == (own.rank == 0)
            states.update(state)

    def second(own):
        w = numpy.ones(1030, numpy.float32)
        with st.ShardedOptimizer(own, {"w": w}, stage=2, optimizer="adamw") as sharded:
            with pytest.raises(st.NotFound, match="moment2.w"):
                sharded.load_state({name: memory for name, memory in states.items() if name != "moment2.w"})
            sharded.load_state(states)
            again = sharded.gather_state()
            assert {name: memory.tobytes() for name, memory in again.items()} == {name: memory.tobytes() for name, memory in states.items()}
            assert sharded.step([numpy.ones(1030, numpy.float32)]).step == 2

    on_ranks(4, first)
    assert sorted(states) == ["moment1.w", "moment2.w", "step"]
    assert int(numpy.asarray(states["step"])) == 1
    on_ranks(2, second)
