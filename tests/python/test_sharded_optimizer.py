"""A sharded optimizer, from Python."""

import numpy
import pytest

import scaletrain as st
from nets import on_each

F32 = numpy.float32


@pytest.mark.parametrize("stage", [1, 2])
def test_each_rank_has_the_update_by_the_mean_of_all(context, stage):
    def act(own):
        w, half = numpy.ones(2048, F32), numpy.zeros(2048, numpy.float16)
        ones = numpy.ones(2048, F32)
        with st.ShardedOptimizer(own, {"w": w}, stage=stage, shard_masters=True, optimizer="sgd", lr=0.5) as sharded:
            sharded.keep_copies([half])
            report = sharded.step([numpy.full(2048, 2 * own.rank, F32)])
            assert (report.step, report.skipped) == (1, False)
            assert (half == 0.5).all() and (w == 0.5).sum() == (w == 1).sum() == 1024
            sharded.set("lr", 1.0)
            if stage == 2:
                sharded.gradient_ready(0, ones)
                sharded.step()
            else:
                with pytest.raises(st.WrongState, match="stage 1"):
                    sharded.gradient_ready(0, ones)
                sharded.step([ones])
            sharded.gather_state()
            assert (w == -0.5).all() and (half == -0.5).all()

    on_each(st.Communicator.local(context, 2, deadline=20), act)


def test_a_skipped_step_lowers_the_scale_and_the_state_goes_to_another_number_of_ranks(context):
    def run(ranks, given):
        states = {}

        def act(own):
            w = numpy.ones(1030, F32)
            with st.ShardedOptimizer(own, {"w": w}, optimizer="adamw") as sharded, st.LossScaler(context) as scaler:
                if given:
                    sharded.load_state(given)
                scale = scaler.scale
                g = numpy.full(1030, numpy.inf if own.rank == 1 else scale, F32)
                assert sharded.step([g], scaler=scaler).skipped and scaler.update() and w[0] == 1
                assert sharded.step([numpy.ones(1030, F32)]).step == 1 + bool(given)
                states.update(sharded.gather_state(0))

        on_each(st.Communicator.local(context, ranks, deadline=20), act)
        return states

    states = run(4, None)
    assert sorted(states) == ["moment1.w", "moment2.w", "step"] and int(numpy.asarray(states["step"])) == 1
    assert int(numpy.asarray(run(2, states)["step"])) == 2
