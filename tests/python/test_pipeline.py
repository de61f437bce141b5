"""A pipeline of the program's own stages, from Python."""

import contextlib
import gc
import weakref

import numpy
import pytest

import scaletrain as st
from nets import on_each

ALIKE = ("f64", (5,))


class Scaling:
    """y = w x of each part; the last part's loss is the sum of y. The input of micro-batch i is i + 1."""

    def __init__(self, fails_at=-1):
        self.weight_gradients = {}
        self.fails_at = fails_at
        self.kept = {}

    def forward(self, work):
        if work.micro_batch == self.fails_at:
            raise LookupError("the sensor is gone")
        assert work.output_gradient is None and work.input_gradient is None and (work.input is None) == (work.part == 0)
        x = numpy.full(5, work.micro_batch + 1.0) if work.input is None else numpy.asarray(work.input)
        self.kept[work.chunk, work.micro_batch] = x  # as an autograd graph does
        if work.output is not None:
            numpy.asarray(work.output)[:] = (2 + work.part) * x

    def backward_input(self, work):
        dy = 1.0 if work.output_gradient is None else numpy.asarray(work.output_gradient)
        if work.input_gradient is not None:
            numpy.asarray(work.input_gradient)[:] = (2 + work.part) * dy

    def backward_weight(self, work):
        x = self.kept.pop((work.chunk, work.micro_batch))
        if work.input is not None:
            with pytest.raises(ValueError):
                numpy.asarray(work.input)[0] = 1
            assert x.__array_interface__["data"][0] == numpy.asarray(work.input).__array_interface__["data"][0]
        dy = 1.0 if work.output_gradient is None else numpy.asarray(work.output_gradient)[0]
        self.weight_gradients[work.part] = self.weight_gradients.get(work.part, 0) + x[0] * dy


@pytest.mark.parametrize("schedule, chunks", [("gpipe", 1), ("1f1b", 1), ("zb-h1", 1), ("interleaved", 2), ("zb-v", 2)])
def test_every_schedule_has_the_sums_of_one_rank(context, schedule, chunks):
    sums = {}

    def act(own):
        stage = Scaling()
        with st.Pipeline(own, schedule, [ALIKE] * chunks, [ALIKE] * chunks, stage) as pipeline:
            pipeline.run(3)
            sums.update(stage.weight_gradients)
            facts = pipeline.schedule(3)
            assert (facts["stages"], facts["chunks"], facts["micro_batches"]) == (2, chunks, 3) and 0 < facts["bubble"] < 1
        with pytest.raises(st.InvalidHandle, match="closed"):
            pipeline.run(3)

    on_each(st.Communicator.local(context, 2, deadline=20), act)
    weights = [2.0 + part for part in range(2 * chunks)]
    assert sums == {part: 6 * numpy.prod(weights) / w for part, w in enumerate(weights)}


def test_an_exception_ends_both_ranks_with_its_words(context):
    def act(own):
        pipeline = st.Pipeline(own, "1f1b", [ALIKE], [ALIKE], Scaling(fails_at=2 if own.rank == 1 else -1))
        with pytest.raises(LookupError if own.rank == 1 else st.RankError, match="the sensor is gone"):
            pipeline.run(4)

    on_each(st.Communicator.local(context, 2, deadline=20), act)


def test_arrays_end_with_the_micro_batch(context):
    class Keeping(Scaling):
        def backward_weight(self, work):
            """Leaves `kept` as it is."""

    def act(own):
        pipeline = st.Pipeline(own, "gpipe", [ALIKE], [ALIKE], Keeping())
        if own.rank == 0:  # has no input of the pipeline's
            with contextlib.suppress(st.RankError):
                pipeline.run(1)
            return
        with pytest.raises(st.InvalidArgument, match="backward_weight: an array .* is still in use"):
            pipeline.run(1)

    on_each(st.Communicator.local(context, 2, deadline=20), act)


def test_a_stage_that_holds_its_pipeline_is_collected(context):
    (own,) = st.Communicator.local(context, 1)
    stage = Scaling()
    stage.pipeline = st.Pipeline(own, "gpipe", [None], [None], stage)
    stage.pipeline.run(2)
    assert stage.weight_gradients == {0: 3}
    with pytest.raises(st.InvalidArgument, match="forward must be a function, got a int"):
        stage.forward = 3
        st.Pipeline(own, "gpipe", [None], [None], stage)
    here = weakref.ref(stage)
    del stage
    gc.collect()
    assert here() is None
