// A step under the host's control: in slices of time, or with a loss that the host computes; and queries and settings between steps.
#include "base/callback_reason.h"
#include "base/os/machine.h"
#include "guard.h"
#include "host_loan.h"
#include "step_calls.h"
#include "trainer_object.h"

using namespace st;
using namespace st::capi;

namespace {

/// Completes a whole step.
void finish(TrainerObject& t, const StepReport& made, st_step_report* report) {
  note(t, made);
  if (report != nullptr) give_report(t, report, made);
  write_log(t);
}

/// Room for a forward's outputs. It is allocated once; without memory for it the step is undone.
void make_room_for_outputs(TrainerObject& t, std::span<const HostView> made) {
  try {
    t.outputs.resize(made.size());
    t.output_dims.resize(made.size());
    for (size_t i = 0; i < made.size(); ++i) t.output_dims[i].assign(made[i].shape.begin(), made[i].shape.end());
  } catch (...) {
    t.trainer->abandon();
    throw;
  }
}

/// The outputs of a forward as views for the host.
void give_outputs(TrainerObject& t, std::span<const HostView> made) {
  make_room_for_outputs(t, made);
  for (size_t i = 0; i < made.size(); ++i) {
    const HostView& view = made[i];
    t.outputs[i] = {view.name.data(),
                    {.dtype = static_cast<st_dtype>(view.dtype),
                     .rank = view.shape.rank(),
                     .dims = t.output_dims[i].data(),
                     .strides = nullptr,
                     .data = const_cast<void*>(view.data),
                     .bytes = view.shape.elements() * bytes_of(view.dtype),
                     .device = 0,
                     .reserved = 0}};
  }
}

// The calls that come in pairs; `call` is the function that the host has called.

st_status gradient(st_trainer* trainer, const char* name, const st_view* to, Reach reach, const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto t = find(trainer);
    make_sharded(*t, reach, [&](ShardedModelCall* collective) {
      const Model& model = *t->model->model;
      const SlotId parameter = model.parameter_named(text_given(name, call, "name"));
      if (reach == Reach::local && t->trainer->is_sharded()) require_local(*t, call, text("the gradient of \"", name, '"'));
      const FloatMode mode;  // the host's rounding must not affect the mean
      t->trainer->gradient(name, written_view(model.slot(parameter).name, to, call, &model.context()), collective);
    });
  };
  return guard(body, call);
}

st_status average(st_trainer* trainer, const char* name, const st_view* to, Reach reach, const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto t = find(trainer);
    make_sharded(*t, reach, [&](ShardedModelCall* collective) {
      const std::string parameter = text_given(name, call, "name");
      const Lease weights(Kind::model, t->model);
      if (reach == Reach::local && t->trainer->is_sharded() && t->trainer->needs_others_for_average(parameter))
        require_local(*t, call, text("the average of \"", parameter, '"'));
      about_tensor(parameter,
                   [&] { t->trainer->average(parameter, written_view(parameter, to, call, &t->model->model->context()), collective); });
    });
  };
  return guard(body, call);
}

}  // namespace

st_status st_trainer_advance(st_trainer* trainer, int64_t n, const st_named_view* batch, int64_t nanoseconds, int32_t* done,
                             st_step_report* report) {
  return guard([&] {
    const double deadline = os::seconds() + static_cast<double>(nanoseconds) * 1e-9;
    const auto t = find(trainer);
    if (done != nullptr) *done = 0;
    std::optional<StepReport> made;
    {
      StepCall call(*t);
      try {
        given(done, "st_trainer_advance: done");
        if (report != nullptr) take(report, "st_trainer_advance: report");
        check(nanoseconds >= 0, "st_trainer_advance: nanoseconds is ", nanoseconds, "; give 0 for one instruction, or more");
        take_batch(*t, n, batch, "st_trainer_advance");
        call.begin();
        made = saved(*t, batch == nullptr ? t->trainer->advance(deadline) : t->trainer->advance(t->views, deadline));
      } catch (...) {
        call.fail();
      }
    }
    if (!made) return;
    *done = 1;
    finish(*t, *made, report);
  });
}

st_status st_trainer_forward(st_trainer* trainer, int64_t n, const st_named_view* batch, int64_t* m, const st_named_view** outputs) {
  return guard([&] {
    given(m, "st_trainer_forward: m") = 0;
    given(outputs, "st_trainer_forward: outputs") = nullptr;
    const auto t = find(trainer);
    StepCall call(*t);
    try {
      take_batch(*t, n, batch, "st_trainer_forward");
      call.begin();
      give_outputs(*t, t->trainer->forward(t->views));
    } catch (...) {
      call.fail();
    }
    *m = static_cast<int64_t>(t->outputs.size());
    *outputs = t->outputs.data();
  });
}

st_status st_trainer_forward_into(st_trainer* trainer, int64_t n, const st_named_view* batch, int64_t m, const st_named_view* outputs) {
  return guard([&] {
    const auto t = find(trainer);
    StepCall call(*t);
    try {
      take_batch(*t, n, batch, "st_trainer_forward_into");
      take_outputs(*t, m, outputs, "st_trainer_forward_into: outputs");
      call.begin();
      t->trainer->forward_into(t->views, t->filled);
    } catch (...) {
      call.fail();
    }
  });
}

st_status st_trainer_backward(st_trainer* trainer, int64_t m, const st_named_view* output_gradients) {
  return guard([&] {
    const auto t = find(trainer);
    StepCall call(*t);
    try {
      check(output_gradients != nullptr || m == 0, "st_trainer_backward: output_gradients is NULL with m = ", m,
            " views; give the views, or m = 0 for the graph's own loss");
      take_batch(*t, m, output_gradients, "st_trainer_backward");
      call.begin();
      output_gradients == nullptr ? t->trainer->backward_own_loss() : t->trainer->backward(t->views);
    } catch (...) {
      call.fail();
    }
  });
}

st_status st_trainer_apply(st_trainer* trainer, st_step_report* report) {
  return guard([&] {
    const auto t = find(trainer);
    StepReport made;
    {
      StepCall call(*t);
      try {
        if (report != nullptr) take(report, "st_trainer_apply: report");
        call.begin();
        made = saved(*t, t->trainer->apply());
      } catch (...) {
        call.fail();
      }
    }
    finish(*t, made, report);
  });
}

st_status st_trainer_gradient(st_trainer* trainer, const char* name, const st_view* to) {
  return gradient(trainer, name, to, Reach::local);
}
st_status st_trainer_gradient_collective(st_trainer* trainer, const char* name, const st_view* to) {
  return gradient(trainer, name, to, Reach::collective);
}

st_status st_trainer_average(st_trainer* trainer, const char* name, const st_view* to) { return average(trainer, name, to, Reach::local); }
st_status st_trainer_average_collective(st_trainer* trainer, const char* name, const st_view* to) {
  return average(trainer, name, to, Reach::collective);
}

st_status st_trainer_use_average(st_trainer* trainer) {
  return guard([&] {
    const auto t = find(trainer);
    make_sharded(*t, [&](ShardedModelCall* collective) {
      const Lease weights(Kind::model, t->model);
      t->trainer->use_average(collective);
    });
  });
}

st_status st_trainer_set(st_trainer* trainer, const char* key, const char* json_value) {
  return guard([&] {
    const auto t = find(trainer);
    t->trainer->set(text_given(key, "st_trainer_set: key"), text_given(json_value, "st_trainer_set: json_value"));
  });
}

st_status st_trainer_set_schedule(st_trainer* trainer, st_learning_rate_fn rate, st_release_fn release, void* user) {
  return guard([&] {
    Trainer::LearningRate before;  // released when the trainer is free again: its owner may use the trainer
    const auto t = find(trainer);
    if (rate == nullptr) {
      before = t->trainer->set_schedule({});
      return;
    }
    const auto loan = std::make_shared<HostLoan>(release, user);
    before = t->trainer->set_schedule([rate, user, loan](int64_t k) {
      double lr = 0;
      const st_status status = ask_host(rate, user, k, &lr);
      if (status != ST_OK)
        fail(Code::callback, text("step: the host's learning rate returned ", text_of_answer(status), " after ", k, " successful steps"));
      return lr;
    });
    loan->accept();
  });
}

st_status st_trainer_get(st_trainer* trainer, const char* key, const char** json_value) {
  return guard([&] {
    const auto t = find(trainer);
    given(json_value, "st_trainer_get: json_value");
    t->answer = t->trainer->recipe().get(text_given(key, "st_trainer_get: key"));
    *json_value = t->answer.c_str();
  });
}
