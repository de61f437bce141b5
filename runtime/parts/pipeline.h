// Runs a host's own stages under a pipeline schedule: the host computes, this sends activations and gradients between the ranks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/memory_source.h"
#include "base/shape.h"
#include "comm/link.h"
#include "plan/pipeline_schedule.h"

namespace st {

/// A part of the model, one of this rank's chunks: what it takes from the part before it and gives to the part after it. The first part has
/// no input and the last one no output: no elements.
struct PipelinePart {
  struct Tensor {
    DType dtype = DType::f32;
    Shape shape = {0};
    bool operator==(const Tensor&) const = default;
  };
  Tensor input, output;
};

class Pipeline {
 public:
  /// `name`: of make_schedule(), or a table of parse_schedule(), which has its own number of micro-batches. Throws invalid_argument.
  static PipelineSchedule schedule_by(std::string_view name, int32_t stages, int32_t chunks, int32_t micro_batches);

  /// One call of the host. Buffers belong to the pipeline; they keep what the host wrote or was given from the forward of a micro-batch to
  /// its weight gradients. Null: the first part has no input, the last one no output.
  struct Work {
    Phase phase = Phase::forward;  // forward, backward_input or backward_weight
    int32_t part = 0, chunk = 0, micro_batch = 0;
    const void* input = nullptr;            // forward reads it
    void* output = nullptr;                 // forward writes it
    const void* output_gradient = nullptr;  // backward_input reads it
    void* input_gradient = nullptr;         // backward_input writes it
  };
  /// An action that is not split calls it for backward_input and then for backward_weight. Its exception ends the run on all ranks.
  using Compute = std::function<void(const Work& work)>;

  /// Collective call; `ranks` are the stages, in order, and are borrowed. `schedule`: as schedule_by() takes it, alike on all ranks. Throws
  /// invalid_argument for a schedule or number of chunks that is not possible; on all ranks rank_mismatch where a part's output is not the
  /// next one's input or ranks give different schedules.
  Pipeline(Communicator& ranks, std::string schedule, const std::vector<PipelinePart>& chunks, std::shared_ptr<MemorySource> memory,
           const CommunicatorOptions& options);

  /// Collective call: runs the schedule once on so many micro-batches. Backward adds in order of the micro-batches in every schedule, so
  /// the host's sums do not depend on it. Throws on all ranks if one of them fails: what Compute threw where it threw, rank_failed with its
  /// message on the others; then the group is over. The deadline is for one call of Compute, and for a rank that is silent: a stage may
  /// wait for longer, as for all stages before it.
  void run(int32_t micro_batches, const Compute& compute);

  const PipelineSchedule& schedule() const { return schedule_; }  // of the last run
  /// That of a run of so many micro-batches. Throws invalid_argument like run().
  PipelineSchedule schedule_of(int32_t micro_batches) const;
  /// Bytes of this rank's buffers, and of what it sends, in a run by this schedule.
  int64_t buffer_bytes(const PipelineSchedule& schedule) const;
  int64_t send_bytes(const PipelineSchedule& schedule) const;
  int64_t allocated_bytes() const;
  int64_t sent_bytes() const;

 private:
  /// Buffers of one kind: of the micro-batches in flight, and where a link brings them, of the one that is expected.
  struct Ring {
    PipelinePart::Tensor tensor;
    Link* link = nullptr;  // to or from a neighbour; null: it is on this rank, or there is none
    bool comes = false;    // over the link; else it goes
    std::vector<Memory> buffers = {};
    std::vector<int64_t> messages = {};  // of the link, by buffer
    size_t at(int32_t micro_batch) const { return static_cast<size_t>(micro_batch) % buffers.size(); }
    std::byte* data(int32_t micro_batch) const { return buffers.empty() ? nullptr : buffers[at(micro_batch)].data(); }
  };
  struct Chunk {
    Ring input, output, output_gradient, input_gradient;
    auto all() { return std::array{&input, &output, &output_gradient, &input_gradient}; }
    auto all() const { return std::array{&input, &output, &output_gradient, &input_gradient}; }
  };

  void agree() const;
  void agree_on(int32_t micro_batches) const;
  void make_room();
  int64_t buffers_of(const Ring& ring, const PipelineSchedule& schedule, int32_t chunk) const;
  Chunk* holder_of(int32_t part);
  void run_all(const Compute& compute);
  void run_one(const StageAction& action, const Compute& compute);
  void expect(Ring& ring, int32_t micro_batch);
  void take(Ring& ring, int32_t micro_batch);
  void send(Ring& ring, int32_t micro_batch);

  Communicator& ranks_;
  const double deadline_;
  const std::string name_;
  const std::shared_ptr<MemorySource> memory_;
  PipelineSchedule schedule_;
  std::vector<Chunk> chunks_;
  std::vector<std::unique_ptr<Link>> links_;
  std::unique_ptr<Communicator> end_;  // the same ranks, for the end of a run: the first stage that is done waits for the last one
};

}  // namespace st
