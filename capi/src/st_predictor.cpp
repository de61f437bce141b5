#include "guard.h"
#include "objects.h"

using namespace st;
using namespace st::capi;

st_status st_predictor_create(st_model* model, st_predictor** predictor) {
  return guard([&] {
    given(predictor, "st_predictor_create: predictor");
    auto object = std::make_shared<PredictorObject>();
    object->model = peek(model);
    object->generator = std::make_unique<Generator>(object->model->model);
    hand_out(predictor, std::move(object));
  });
}

st_status st_predictor_destroy(st_predictor* predictor) {
  return guard([&] { drop(predictor); });
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
    check(n >= 1 && tokens != nullptr, "st_predictor_generate: the prompt has ", n, " tokens", tokens == nullptr ? " at NULL" : "",
          "; give at least one");
    check(on_token != nullptr, "st_predictor_generate: on_token is NULL; the text would be lost");
    GenerateOptions ours;
    if (options != nullptr) {
      const st_generate_options theirs = take(options, "st_predictor_generate: options");
      ours = {theirs.tokens, theirs.temperature, theirs.top_k, static_cast<uint64_t>(theirs.seed)};
    }
    const auto p = find(predictor);
    const Lease weights(Kind::model, p->model);
    p->generator->run({tokens, static_cast<size_t>(n)}, ours, [&](int32_t token) { return on_token(user, token) == ST_OK; });
  });
}
