#include "parts/pipeline.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <optional>

#include "base/error.h"
#include "comm/call_checks.h"
#include "parts/stage_watch.h"

namespace st {
namespace {

/// A rank's description of a part for the others.
struct Told {
  int32_t dtype = 0, rank = 0;
  std::array<int64_t, kMaxDims> dims{};
};

Told told(const PipelinePart::Tensor& tensor) {
  Told it{.dtype = static_cast<int32_t>(tensor.dtype), .rank = tensor.shape.rank()};
  for (int32_t i = 0; i < it.rank; ++i) it.dims[static_cast<size_t>(i)] = tensor.shape[i];
  return it;
}

std::string text_of(const Told& tensor) {
  std::string dims;
  for (int32_t i = 0; i < tensor.rank; ++i) dims += text(i > 0 ? ", " : "", tensor.dims[static_cast<size_t>(i)]);
  return text(name_of(static_cast<DType>(tensor.dtype)), "[", dims, "]");
}

int64_t bytes_of(const PipelinePart::Tensor& tensor) { return tensor.shape.elements() * bytes_of(tensor.dtype); }

constexpr int32_t kMostMicroBatches = 1 << 20;

}  // namespace

PipelineSchedule Pipeline::schedule_by(std::string_view name, int32_t stages, int32_t chunks, int32_t micro_batches) {
  if (!is_schedule_table(name)) return make_schedule(name, stages, chunks, micro_batches);
  PipelineSchedule schedule = parse_schedule(name);
  check(schedule.stages == stages && schedule.chunks == chunks, "pipeline: the schedule's table is of ", schedule.stages, " stages with ",
        schedule.chunks, " chunks, the group has ", stages, " ranks, this one ", chunks, " chunks");
  return schedule;
}

Pipeline::Pipeline(Communicator& ranks, std::string schedule, const std::vector<PipelinePart>& chunks, std::shared_ptr<MemorySource> memory,
                   const CommunicatorOptions& options)
    : ranks_(ranks),
      deadline_(options.deadline),
      name_(std::move(schedule)),
      memory_(std::move(memory)),
      schedule_(schedule_by(name_, ranks.size(), static_cast<int32_t>(chunks.size()), 1)) {
  for (const PipelinePart& part : chunks)
    chunks_.push_back({.input = {.tensor = part.input, .comes = true},
                       .output = {.tensor = part.output},
                       .output_gradient = {.tensor = part.output, .comes = true},
                       .input_gradient = {.tensor = part.input}});
  agree();
  std::vector<LinkEnds> ends;  // forward of each part but the last, then backward
  for (const bool is_forward : {true, false})
    for (int32_t part = 0; part + 1 < schedule_.parts(); ++part) {
      const int32_t here = schedule_.stage_of(part), next = schedule_.stage_of(part + 1);
      if (here != next) ends.push_back(is_forward ? LinkEnds{here, next} : LinkEnds{next, here});
    }
  CommunicatorOptions patient = options;
  patient.waits_for_living = true;
  links_ = make_links(ranks_, ends, patient);
  end_ = ranks_.duplicate(patient);
  size_t link = 0;
  for (const bool is_forward : {true, false})
    for (int32_t part = 0; part + 1 < schedule_.parts(); ++part) {
      if (schedule_.stage_of(part) == schedule_.stage_of(part + 1)) continue;
      Link* const end = links_[link++].get();
      if (Chunk* const before = holder_of(part)) (is_forward ? before->output : before->output_gradient).link = end;
      if (Chunk* const after = holder_of(part + 1)) (is_forward ? after->input : after->input_gradient).link = end;
    }
}

/// This rank's chunk that is this part; null: another rank has it.
Pipeline::Chunk* Pipeline::holder_of(int32_t part) {
  if (schedule_.stage_of(part) != ranks_.rank()) return nullptr;
  return &chunks_[static_cast<size_t>(schedule_.chunk_of(part))];
}

/// All ranks have the same schedule, and each part's output is the next one's input.
void Pipeline::agree() const {
  AlikeOnAll hash;
  for (const char c : name_) hash.add(c);
  const std::array<uint64_t, 2> own = {hash.value(), chunks_.size()};
  std::vector<std::array<uint64_t, 2>> all(static_cast<size_t>(ranks_.size()));
  ranks_.all_gather(own.data(), all.data(), std::ssize(all) * static_cast<int64_t>(sizeof own), DType::u8, "the schedule");
  for (int32_t r = 0; r < ranks_.size(); ++r) {
    const auto& theirs = all[static_cast<size_t>(r)];
    if (theirs == all[0]) continue;
    refuse_rank(ranks_, r, "",
                theirs[1] != all[0][1]
                    ? text("pipeline: ", text_of_rank(ranks_, r), " has ", theirs[1], " chunks, rank 0 ", all[0][1])
                    : text("pipeline: ", text_of_rank(ranks_, r), " has another schedule than rank 0; give all ranks the same one"));
  }
  std::vector<std::array<Told, 2>> parts, parts_of_all(static_cast<size_t>(schedule_.parts()));
  for (const Chunk& chunk : chunks_) parts.push_back({told(chunk.input.tensor), told(chunk.output.tensor)});
  ranks_.all_gather(parts.data(), parts_of_all.data(), std::ssize(parts_of_all) * static_cast<int64_t>(sizeof parts[0]), DType::u8,
                    "its parts");
  const auto of = [&](int32_t part) -> const std::array<Told, 2>& {  // rank after rank, each with its chunks
    return parts_of_all[static_cast<size_t>(schedule_.stage_of(part)) * static_cast<size_t>(schedule_.chunks) +
                        static_cast<size_t>(schedule_.chunk_of(part))];
  };
  for (int32_t part = 0; part + 1 < schedule_.parts(); ++part) {
    const Told &output = of(part)[1], &input = of(part + 1)[0];
    if (output.dtype == input.dtype && output.rank == input.rank && output.dims == input.dims) continue;
    const int32_t after = schedule_.stage_of(part + 1);
    refuse_rank(ranks_, after, "",
                text("pipeline: part ", part + 1, " on ", text_of_rank(ranks_, after), " takes ", text_of(input), ", part ", part,
                     " on rank ", schedule_.stage_of(part), " gives ", text_of(output)));
  }
}

void Pipeline::agree_on(int32_t micro_batches) const {
  int64_t own = micro_batches;
  std::vector<int64_t> all(static_cast<size_t>(ranks_.size()));
  ranks_.all_gather(&own, all.data(), std::ssize(all), DType::i64, "the number of micro-batches");
  for (int32_t r = 0; r < ranks_.size(); ++r)
    if (all[static_cast<size_t>(r)] != all[0])
      refuse_rank(ranks_, r, "",
                  text("pipeline: ", text_of_rank(ranks_, r), " runs ", all[static_cast<size_t>(r)], " micro-batches, rank 0 ", all[0],
                       "; run the same number on all ranks"));
}

void Pipeline::make_room() {
  for (int32_t c = 0; c < schedule_.chunks; ++c)
    for (Ring* const ring : chunks_[static_cast<size_t>(c)].all())
      while (std::ssize(ring->buffers) < buffers_of(*ring, schedule_, c)) {
        ring->buffers.emplace_back(bytes_of(ring->tensor), memory_, MemoryRole::buckets);
        ring->messages.push_back(0);
      }
}

int64_t Pipeline::buffers_of(const Ring& ring, const PipelineSchedule& schedule, int32_t chunk) const {
  return in_flight(schedule, ranks_.rank(), chunk) + (ring.comes && ring.link != nullptr ? 1 : 0);
}

void Pipeline::run(int32_t micro_batches, const Compute& compute) {
  agree_on(micro_batches);
  if (schedule_.micro_batches != micro_batches) schedule_ = schedule_of(micro_batches);
  const auto give_up = [&](const char* why) { ranks_.abort(text("stage ", ranks_.rank(), " has failed: ", why)); };
  try {
    make_room();
    for (Chunk& chunk : chunks_)
      for (Ring* const ring : chunk.all()) expect(*ring, 0);
    run_all(compute);
    for (const Chunk& chunk : chunks_)
      for (const Ring* const ring : chunk.all())
        if (ring->link != nullptr) ring->link->wait(*std::ranges::max_element(ring->messages));
    end_->barrier("the end of a run");  // a stage may fail in work that no other one waits for
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  } catch (...) {
    give_up("an unknown error");
    throw;
  }
}

/// The others wait for this stage as long as it lives, so it ends the group itself if a call of the host does not return.
void Pipeline::run_all(const Compute& compute) {
  std::atomic<const StageAction*> running{nullptr};
  std::optional<StageWatch> watch;
  const auto end = [&] {
    const StageAction& it = *running.load();
    ranks_.abort(text("stage ", ranks_.rank(), " has computed for longer than the deadline of ", deadline_, " s: ", name_of(it.phase),
                      " of part ", schedule_.part_of(ranks_.rank(), it.chunk), ", micro-batch ", it.micro_batch));
  };
  if (ranks_.size() > 1) watch.emplace(deadline_, end);
  const Compute watched = [&](const Work& work) {
    if (watch) watch->begin();
    compute(work);
    if (watch) watch->end();
  };
  for (const StageAction& action : schedule_.actions[static_cast<size_t>(ranks_.rank())]) {
    running.store(&action);
    run_one(action, watched);
  }
}

/// The micro-batch whose buffer it takes is over: one more is there than may be in flight.
void Pipeline::expect(Ring& ring, int32_t micro_batch) {
  if (ring.link == nullptr || !ring.comes || micro_batch == schedule_.micro_batches) return;
  ring.messages[ring.at(micro_batch)] =
      ring.link->expect(ring.data(micro_batch), ring.tensor.shape.elements(), ring.tensor.dtype, "pipeline");
}

void Pipeline::take(Ring& ring, int32_t micro_batch) {
  if (ring.link == nullptr) return;
  ring.link->wait(ring.messages[ring.at(micro_batch)]);
  expect(ring, micro_batch + 1);
}

void Pipeline::send(Ring& ring, int32_t micro_batch) {
  if (ring.link == nullptr) return;
  ring.messages[ring.at(micro_batch)] =
      ring.link->post(ring.data(micro_batch), ring.tensor.shape.elements(), ring.tensor.dtype, "pipeline");
}

void Pipeline::run_one(const StageAction& action, const Compute& compute) {
  const int32_t k = action.micro_batch, part = schedule_.part_of(ranks_.rank(), action.chunk);
  Chunk& chunk = chunks_[static_cast<size_t>(action.chunk)];
  Chunk* const before = part == 0 ? nullptr : holder_of(part - 1);  // on this rank, in flight for longer than this one
  const bool is_first = part == 0, is_last = part + 1 == schedule_.parts();
  const auto copy = [&](const Ring& from, const Ring& to) {
    std::memcpy(to.data(k), from.data(k), static_cast<size_t>(bytes_of(to.tensor)));
  };
  /// The last micro-batch of these buffers may have sent something that is still under way.
  const auto wait_for_room = [&](Ring& ring) {
    if (ring.link != nullptr) ring.link->wait(ring.messages[ring.at(k)]);
  };
  const auto call = [&](Phase phase) {
    const bool has_gradients = phase != Phase::forward;
    compute({.phase = phase,
             .part = part,
             .chunk = action.chunk,
             .micro_batch = k,
             .input = is_first ? nullptr : chunk.input.data(k),
             .output = is_last ? nullptr : chunk.output.data(k),
             .output_gradient = is_last || !has_gradients ? nullptr : chunk.output_gradient.data(k),
             .input_gradient = is_first || !has_gradients ? nullptr : chunk.input_gradient.data(k)});
  };
  if (action.phase == Phase::forward) {
    wait_for_room(chunk.output);
    take(chunk.input, k);
    if (before != nullptr) copy(before->output, chunk.input);
    call(Phase::forward);
    send(chunk.output, k);
    return;
  }
  if (action.phase != Phase::backward_weight) {
    wait_for_room(chunk.input_gradient);
    take(chunk.output_gradient, k);
    call(Phase::backward_input);
    send(chunk.input_gradient, k);
    if (before != nullptr) copy(chunk.input_gradient, before->output_gradient);
  }
  if (action.phase != Phase::backward_input) call(Phase::backward_weight);
}

PipelineSchedule Pipeline::schedule_of(int32_t micro_batches) const {
  check(micro_batches >= 1 && micro_batches <= kMostMicroBatches, "pipeline: a run has 1 to ", kMostMicroBatches, " micro-batches, got ",
        micro_batches);
  PipelineSchedule schedule = schedule_by(name_, schedule_.stages, schedule_.chunks, micro_batches);
  check(schedule.micro_batches == micro_batches, "pipeline: the schedule's table is for ", schedule.micro_batches,
        " micro-batches, the run has ", micro_batches);
  return schedule;
}

int64_t Pipeline::buffer_bytes(const PipelineSchedule& schedule) const {
  int64_t bytes = 0;
  for (int32_t c = 0; c < schedule.chunks; ++c)
    for (const Ring* const ring : chunks_[static_cast<size_t>(c)].all()) bytes += buffers_of(*ring, schedule, c) * bytes_of(ring->tensor);
  return bytes;
}

int64_t Pipeline::send_bytes(const PipelineSchedule& schedule) const {
  int64_t bytes = 0;
  for (const Chunk& chunk : chunks_)
    for (const Ring* const ring : chunk.all())
      if (ring->link != nullptr && !ring->comes) bytes += bytes_of(ring->tensor);
  return bytes * schedule.micro_batches;
}

int64_t Pipeline::allocated_bytes() const {
  int64_t bytes = 0;
  for (const Chunk& chunk : chunks_)
    for (const Ring* const ring : chunk.all())
      for (const Memory& buffer : ring->buffers) bytes += buffer.size();
  return bytes;
}

int64_t Pipeline::sent_bytes() const {
  int64_t bytes = 0;
  for (const auto& link : links_) bytes += link ? link->sent_bytes() : 0;
  return bytes;
}

}  // namespace st
