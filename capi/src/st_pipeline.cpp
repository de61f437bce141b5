#include <scaletrain/pipeline.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/callback_reason.h"
#include "base/json_line.h"
#include "group_call.h"
#include "guard.h"
#include "pipeline_object.h"

using namespace st;
using namespace st::capi;

namespace {

constexpr int32_t kMostChunks = 1024;

PipelinePart::Tensor tensor_given(const st_op_type& type, const char* of, int32_t chunk) {
  constexpr const char* kCall = "st_pipeline_create";
  check(type.dtype >= ST_F32 && type.dtype <= ST_U8, kCall, ": the ", of, " of chunk ", chunk, " has dtype ", type.dtype,
        "; use one of ST_F32 to ST_U8");
  check(type.rank >= 1 && type.rank <= kMaxDims, kCall, ": the ", of, " of chunk ", chunk, " has ", type.rank, " dims; give 1 to ",
        kMaxDims);
  double elements = 1;
  for (int32_t i = 0; i < type.rank; ++i) {
    check(type.dims[i] >= 1, kCall, ": the ", of, " of chunk ", chunk, " has dim ", type.dims[i], "; give 1 or more");
    elements *= static_cast<double>(type.dims[i]);
  }
  check(elements < 0x1p50, kCall, ": the ", of, " of chunk ", chunk, " has ", elements, " elements");
  return {static_cast<DType>(type.dtype), Shape(std::span<const int64_t>(type.dims, static_cast<size_t>(type.rank)))};
}

std::vector<PipelinePart> parts_given(const PipelineSchedule& places, int32_t rank, const st_op_type* inputs, const st_op_type* outputs) {
  std::vector<PipelinePart> parts(static_cast<size_t>(places.chunks));
  for (int32_t c = 0; c < places.chunks; ++c) {
    const int32_t part = places.part_of(rank, c);
    if (part > 0) parts[static_cast<size_t>(c)].input = tensor_given(inputs[c], "input", c);
    if (part + 1 < places.parts()) parts[static_cast<size_t>(c)].output = tensor_given(outputs[c], "output", c);
  }
  return parts;
}

st_view view_of(const PipelinePart::Tensor& tensor, const void* data) {
  const auto* const dims = tensor.shape.begin();
  return {static_cast<st_dtype>(tensor.dtype),
          tensor.shape.rank(),
          dims,
          nullptr,
          const_cast<void*>(data),
          data == nullptr ? 0 : tensor.shape.elements() * bytes_of(tensor.dtype),
          0,
          0};
}

void ask(const PipelineObject& object, const Pipeline::Work& work) {
  const st_stage_fn function = work.phase == Phase::forward          ? object.callbacks.forward
                               : work.phase == Phase::backward_input ? object.callbacks.backward_input
                                                                     : object.callbacks.backward_weight;
  if (function == nullptr) return;
  const PipelinePart& part = object.parts[static_cast<size_t>(work.chunk)];
  const st_stage_work theirs = {work.part,
                                work.chunk,
                                work.micro_batch,
                                0,
                                view_of(part.input, work.input),
                                view_of(part.output, work.output),
                                view_of(part.output, work.output_gradient),
                                view_of(part.input, work.input_gradient)};
  const st_status status = ask_host(function, object.user, &theirs);
  require(status == ST_OK, Code::callback, "st_pipeline_run: ", name_of(work.phase), " of part ", work.part, ", micro-batch ",
          work.micro_batch, ": the callback returned ", text_of_answer(status));
}

}  // namespace

st_status st_pipeline_callbacks_init(st_pipeline_callbacks* callbacks, size_t size) {
  return init(callbacks, size, st_pipeline_callbacks{});
}

st_status st_pipeline_create(st_communicator* communicator, const char* schedule, int32_t n, const st_op_type* inputs,
                             const st_op_type* outputs, const st_pipeline_callbacks* callbacks, void* user, st_pipeline** pipeline) {
  return guard([&] {
    constexpr const char* kCall = "st_pipeline_create";
    given(pipeline, "st_pipeline_create: pipeline");
    auto members = peek(communicator);  // first, so that allocations use its context's memory
    auto object = std::make_shared<PipelineObject>();
    object->group = std::move(members);
    const GroupCall call(Kind::communicator, object->group);
    const std::string name = text_given(schedule, "st_pipeline_create: schedule");
    check(n >= 1 && n <= kMostChunks, kCall, ": n is ", n, "; it must be 1 to ", kMostChunks);
    given(inputs, "st_pipeline_create: inputs");
    given(outputs, "st_pipeline_create: outputs");
    object->callbacks = take(callbacks, "st_pipeline_create: callbacks");
    check(object->callbacks.forward != nullptr && object->callbacks.backward_input != nullptr, kCall,
          ": callbacks: forward and backward_input are needed");
    object->user = user;
    CommunicatorObject& group = *object->group;
    object->parts = parts_given(Pipeline::schedule_by(name, group.ranks->size(), n, 1), group.ranks->rank(), inputs, outputs);
    take_turn(group);
    CommunicatorOptions options;
    options.deadline = group.ranks->deadline();
    options.is_cancelled = [&of = group] { return of.context->cancels() != of.cancels; };
    options.warn = [log = group.context->options().log](const std::string& what) { log.warning("pipeline", what); };
    object->pipeline = std::make_unique<Pipeline>(*group.ranks, name, object->parts, group.context->memory(), options);
    hand_out(pipeline, std::move(object));
  });
}

st_status st_pipeline_destroy(st_pipeline* pipeline) { return drop(pipeline); }

st_status st_pipeline_run(st_pipeline* pipeline, int32_t micro_batches) {
  return guard([&] {
    const auto object = find(pipeline);
    const GroupCall call(Kind::communicator, object->group);
    take_turn(*object->group);
    object->pipeline->run(micro_batches, [&](const Pipeline::Work& work) { ask(*object, work); });
  });
}

st_status st_pipeline_schedule(st_pipeline* pipeline, int32_t micro_batches, const char** json) {
  return guard([&] {
    const char*& out = given(json, "st_pipeline_schedule: json");
    const auto object = find(pipeline);
    const PipelineSchedule schedule = object->pipeline->schedule_of(micro_batches);
    std::string most;
    for (int32_t s = 0; s < schedule.stages; ++s) most += text(s == 0 ? "[" : ",", in_flight(schedule, s));
    JsonLine line;
    line.add("stages", schedule.stages).add("chunks", schedule.chunks).add("micro_batches", schedule.micro_batches);
    line.add_json("in_flight", most + "]").add("buffer_bytes", object->pipeline->buffer_bytes(schedule));
    line.add("send_bytes", object->pipeline->send_bytes(schedule)).add("bubble", 1 - 3.0 * micro_batches / makespan(schedule, {}));
    line.add("table", print_schedule(schedule));
    object->answer = line.text();
    out = object->answer.c_str();
  });
}
