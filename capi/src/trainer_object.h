// A trainer, with what it keeps for its log and its report.
#pragma once

#include <scaletrain/scaletrain.h>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint_object.h"
#include "communicator_object.h"
#include "model_object.h"
#include "object_handles.h"
#include "report/step_history.h"
#include "train/trainer.h"

namespace st::capi {

struct TrainerObject final : Object, Trimmable {
  void trim() override;

  std::shared_ptr<ModelObject> model;
  std::shared_ptr<CommunicatorObject> group;  // the group in which it is a rank; null if none
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<MetricsLog> log;
  std::optional<StepReport> to_log;  // the step whose call has not returned yet
  bool is_logged = false;            // whether that step's line was written
  std::exception_ptr log_error;      // of its line or an earlier one
  std::vector<HostView> views;       // of the step's batch; kept so that a step allocates nothing
  std::vector<HostView> filled;      // likewise, of the outputs of st_trainer_forward_into
  StepHistory history;               // for the report page
  std::vector<ValidationPoint> evaluations;
  std::pair<int64_t, double> average_loss = {-1, 0};  // of the last evaluation of the average: steps, loss
  std::atomic<bool> stop{false};
  double started = 0;
  std::vector<std::vector<int64_t>> output_dims;  // of forward's outputs, in order
  std::vector<st_named_view> outputs;
  std::vector<st_metric> metrics;  // of the last evaluation
  std::vector<std::string> metric_names;
  BackgroundSaves saves;
};

ST_HANDLE(st_trainer, trainer, TrainerObject)

}  // namespace st::capi
