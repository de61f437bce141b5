#include <functional>

#include "group_call.h"
#include "guard.h"
#include "local_call.h"
#include "model_object.h"
#include "predictor_object.h"
#include "views.h"

using namespace st;
using namespace st::capi;

namespace {

st_status create(st_model* model, const st_predictor_options* options, st_predictor** predictor, Reach reach,
                 const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    auto weights = peek(model);  // first, so that allocations use its context's memory
    auto object = std::make_shared<PredictorObject>();
    object->model = std::move(weights);
    if (object->model->model->is_sharded()) {
      const Lease held(Kind::model, object->model);
      if (reach == Reach::local) {
        given(predictor, call, "predictor");
        require_local(*held, call, "the parameters");
      }
      object->group = sharding_group_of(*held, call);
    }
    make_collectively(object->group, [&](ShardedModelCall* collective) {
      given(predictor, call, "predictor");
      PredictorOptions ours;
      if (options != nullptr) {
        const st_predictor_options theirs = take(options, text(call, ": options").c_str());
        ours = {theirs.shared != 0, theirs.threads};
      }
      object->predictor = std::make_unique<Predictor>(object->model->model, ours, collective);
    });
    object->model->model->context().on_trim(object);
    hand_out(predictor, std::move(object));
  };
  return guard(body, call);
}

}  // namespace

st_status st_predictor_options_init(st_predictor_options* options, size_t size) {
  st_predictor_options defaults{};
  defaults.threads = PredictorOptions{}.threads;
  return init(options, size, defaults);
}

st_status st_predictor_create(st_model* model, const st_predictor_options* options, st_predictor** predictor) {
  return create(model, options, predictor, Reach::local);
}
st_status st_predictor_create_collective(st_model* model, const st_predictor_options* options, st_predictor** predictor) {
  return create(model, options, predictor, Reach::collective);
}

st_status st_predictor_destroy(st_predictor* predictor) { return drop(predictor); }

st_status st_predictor_run(st_predictor* predictor, int64_t n, const st_named_view* inputs, int64_t m, const st_named_view* outputs) {
  return guard([&] {
    const Use p(peek(predictor));
    const auto run = [&](ShardedModelCall* collective) {
      const Context& home = p->model->model->context();
      const ViewList given_inputs(n, inputs, read_view, "st_predictor_run: inputs", home);
      const ViewList given_outputs(m, outputs, written_view, "st_predictor_run: outputs", home);
      p->predictor->run(given_inputs.views(), given_outputs.views(), collective);
    };
    make_collectively(p->group, run);
  });
}

st_status st_predictor_refresh(st_predictor* predictor) {
  return guard([&] {
    const Use p(peek(predictor));
    make_collectively(p->group, [&](ShardedModelCall* collective) { p->predictor->refresh(collective); });
  });
}

st_status st_generate_options_init(st_generate_options* options, size_t size) {
  const GenerateOptions standard;
  st_generate_options defaults{};
  defaults.tokens = standard.tokens;
  defaults.temperature = standard.temperature;
  defaults.top_k = standard.top_k;
  return init(options, size, defaults);
}

st_status st_predictor_generate(st_predictor* predictor, int64_t n, const int32_t* tokens, const st_generate_options* options,
                                st_on_token_fn on_token, void* user) {
  return guard([&] {
    const Use p(peek(predictor));
    const auto give = [&](int32_t token) { return call_host(on_token, user, token) == ST_OK; };
    make_collectively(p->group, [&](ShardedModelCall* collective) {
      check(n >= 1 && tokens != nullptr, "st_predictor_generate: the prompt has ", n, " tokens", tokens == nullptr ? " at NULL" : "",
            "; give at least one");
      check(on_token != nullptr, "st_predictor_generate: on_token is NULL, so the text would be lost; give a callback");
      GenerateOptions ours;
      if (options != nullptr) {
        const st_generate_options theirs = take(options, "st_predictor_generate: options");
        ours = {theirs.tokens, theirs.temperature, theirs.top_k, static_cast<uint64_t>(theirs.seed)};
      }
      p->predictor->generate({tokens, static_cast<size_t>(n)}, ours, give, collective);
    });
  });
}
