// A predictor: forward passes of a model, from any number of threads.
#pragma once

#include <scaletrain/predictor.h>

#include <scaletrain/model.hpp>
#include <vector>

namespace scaletrain {

struct PredictorOptions {
  bool shared = false;  // the model's present weights, instead of a snapshot
  int32_t threads = 1;  // of one run
};

struct GenerateOptions {
  int64_t tokens = 200;
  double temperature = 0.8;
  int64_t top_k = 40;
  int64_t seed = 0;
};

/// Called with each new token; false ends the text.
using TokenFunction = std::function<bool(int32_t token)>;

class Predictor : public detail::Handle<st_predictor, st_predictor_destroy> {
 public:
  explicit Predictor(const Model& model) : Predictor(model, PredictorOptions()) {}
  Predictor(const Model& model, const PredictorOptions& options) : Predictor(model, options, st_predictor_create) {}
  /// All ranks make one, then the same refreshes, runs and generates, each with its own rows or text. Works for every model; the
  /// constructors throw wrong_state for one that is sharded over ranks.
  static Predictor collective(const Model& model, const PredictorOptions& options = PredictorOptions()) {
    return Predictor(model, options, st_predictor_create_collective);
  }

  /// Fills `outputs`, with any number of rows. From any thread, several at once, also while a trainer steps.
  void run(const Views& inputs, const Views& outputs) const {
    for (const NamedView& output : outputs) detail::writable("Predictor::run: output", output.view, output.name);
    done(st_predictor_run(get(), inputs.size(), inputs.raw(), outputs.size(), outputs.raw()));
  }
  /// Takes the weights of the newest whole step.
  void refresh() const { done(st_predictor_refresh(get())); }

  /// Continues `prompt`; on_token gets each new token and returns false to end. Its exceptions are rethrown here.
  void generate(const std::vector<int32_t>& prompt, const GenerateOptions& options, const TokenFunction& on_token) const {
    st_generate_options raw;
    done(st_generate_options_init(&raw, sizeof raw));
    raw.tokens = options.tokens;
    raw.temperature = options.temperature;
    raw.top_k = options.top_k;
    raw.seed = options.seed;
    Text text{on_token, {}};
    done(st_predictor_generate(get(), static_cast<int64_t>(prompt.size()), prompt.data(), &raw, on_token ? Text::call : nullptr, &text));
    text.fault.rethrow();  // the library ends the text without an error
  }
  std::vector<int32_t> generate(const std::vector<int32_t>& prompt, const GenerateOptions& options) const {
    std::vector<int32_t> made;
    generate(prompt, options, [&](int32_t token) {
      made.push_back(token);
      return true;
    });
    return made;
  }

 private:
  template <class Call>
  Predictor(const Model& model, const PredictorOptions& options, Call create) : Handle(detail::Access::host(model)) {
    st_predictor_options raw;
    done(st_predictor_options_init(&raw, sizeof raw));
    raw.shared = options.shared ? 1 : 0;
    raw.threads = options.threads;
    done(create(model.get(), &raw, out()));
  }

  struct Text {
    const TokenFunction& on_token;
    detail::Fault fault;
    static st_status call(void* user, int32_t token) {
      Text& text = *static_cast<Text*>(user);
      bool more = false;
      detail::shielded(text.fault, [&] { more = text.on_token(token); });
      return more ? ST_OK : ST_CALLBACK;
    }
  };
};

}  // namespace scaletrain
