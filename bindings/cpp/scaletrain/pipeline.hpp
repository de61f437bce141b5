// A pipeline of the program's own stages: the program computes, the library runs a schedule and sends between the ranks.
#pragma once

#include <scaletrain/pipeline.h>

#include <functional>
#include <memory>
#include <scaletrain/communicator.hpp>
#include <string>
#include <vector>

namespace scaletrain {

/// One call of the program. data() is null where there is nothing: the first part has no input, the last one no output, and forward no
/// gradients. The memory is the pipeline's; what is in it stays from the forward of a micro-batch to its backward_weight.
struct StageWork {
  int32_t part = 0;         // of the model, from 0
  int32_t chunk = 0;        // of this rank, from 0
  int32_t micro_batch = 0;  // of this run, from 0
  View input;               // forward reads it; so may the others
  View output;              // forward fills it completely
  View output_gradient;     // backward_input reads it; so may backward_weight
  View input_gradient;      // backward_input fills it completely
};

/// Computes a part on a micro-batch. An exception ends the run on all ranks and is rethrown by run() here.
using StageFunction = std::function<void(const StageWork& work)>;

struct Stage {
  StageFunction forward;          // the last part also computes its loss
  StageFunction backward_input;   // the gradient of the part's input; the last part begins with its loss
  StageFunction backward_weight;  // adds to the gradients of the part's weights; empty: backward_input does that
};

/// Holds `stage` until it is closed. Its functions are called on the thread that is in run().
class Pipeline : public detail::Handle<st_pipeline, st_pipeline_destroy> {
 public:
  /// All ranks call it; rank s is stage s. schedule: "gpipe", "1f1b", "zb-h1", "interleaved", "zb-v" or a table. inputs, outputs: one for
  /// each chunk of this rank, without batch dims; the first part's input and the last part's output are not read.
  Pipeline(const Communicator& communicator, const std::string& schedule, const std::vector<OpType>& inputs,
           const std::vector<OpType>& outputs, const Stage& stage)
      : Handle(detail::Access::host(communicator)), own_(std::make_shared<Own>()) {
    if (inputs.size() != outputs.size())
      throw Error(Status::invalid_argument, "Pipeline: inputs has " + std::to_string(inputs.size()) + " types, outputs " +
                                                std::to_string(outputs.size()) + "; give one of each for every chunk of this rank");
    own_->stage = stage;
    st_pipeline_callbacks raw;
    check(st_pipeline_callbacks_init(&raw, sizeof raw));
    raw.forward = stage.forward ? call<&Stage::forward> : nullptr;
    raw.backward_input = stage.backward_input ? call<&Stage::backward_input> : nullptr;
    raw.backward_weight = stage.backward_weight ? call<&Stage::backward_weight> : nullptr;
    const std::vector<st_op_type> in = raw_types(inputs), out_types = raw_types(outputs);
    done(st_pipeline_create(communicator.get(), schedule.c_str(), static_cast<int32_t>(in.size()), in.data(), out_types.data(), &raw,
                            own_.get(), out()));
  }

  /// All ranks call it with the same number. Returns when all ranks' work is done. After an error the communicator's group is
  /// over.
  void run(int32_t micro_batches) const {
    const std::shared_ptr<Own> own = own_;  // a function may destroy the pipeline
    done(st_pipeline_run(get(), micro_batches), &own->fault);
  }
  /// Describes such a run as JSON, without running it: its table, bubble and bytes (pipeline.h).
  std::string schedule(int32_t micro_batches) const {
    return text([&](st_pipeline* pipeline, const char** json) { return st_pipeline_schedule(pipeline, micro_batches, json); });
  }

 private:
  struct Own {
    Stage stage;
    detail::Fault fault;
  };
  template <StageFunction Stage::*function>
  static st_status call(void* user, const st_stage_work* raw) {
    Own& own = *static_cast<Own*>(user);
    return detail::shielded(own.fault, [&] {
      (own.stage.*function)({raw->part, raw->chunk, raw->micro_batch, View(raw->input), View(raw->output), View(raw->output_gradient),
                             View(raw->input_gradient)});
    });
  }
  static std::vector<st_op_type> raw_types(const std::vector<OpType>& types) {
    std::vector<st_op_type> raw(types.size());
    for (size_t i = 0; i < types.size(); ++i) raw[i] = detail::raw_type("Pipeline: a type has", types[i]);
    return raw;
  }

  std::shared_ptr<Own> own_;
};

}  // namespace scaletrain
