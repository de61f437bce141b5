#include "train/training_state.h"

#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/json_line.h"

namespace st {
namespace {

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
constexpr int64_t kCounted = int64_t{1} << 53;  // what steps add to, without a thought of overflow

std::string exact(double value) { return std::isfinite(value) ? json_of(value) : "null"; }

std::string quoted(std::string_view value) {
  std::string out;
  append_json_string(out, value);
  return out;
}

/// The members of the object, each checked as it is asked for.
class Members {
 public:
  Members(const Json& object, const std::string& file) : object_(object), file_(file) {}

  int64_t whole(std::string_view key, int64_t least, int64_t most) const {
    const Json& value = member(key);
    const bool is_inside = value.is(Json::Kind::whole) && value.whole() >= least && value.whole() <= most;
    if (!is_inside) refuse(key, value, text("a whole number from ", least, " to ", most));
    return value.whole();
  }

  double number(std::string_view key) const {
    const Json& value = member(key);
    if (value.is(Json::Kind::null)) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number() || !std::isfinite(value.number())) refuse(key, value, "a finite number or null");
    return value.number();
  }

  const std::string& text_of(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is(Json::Kind::text)) refuse(key, value, "a string");
    return value.text();
  }

  /// A text of version 1 that its first writers did not have; "": it is not there.
  std::string known(std::string_view key) const { return object_.find(key) == nullptr ? "" : text_of(key); }

  /// As JSON; "" where it is null.
  std::string object_of(std::string_view key) const {
    const Json& value = member(key);
    if (value.is(Json::Kind::null)) return "";
    if (!value.is(Json::Kind::object)) refuse(key, value, "an object or null");
    return value.dump();
  }

  std::vector<std::string> texts(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is(Json::Kind::list)) refuse(key, value, "a list of strings");
    std::vector<std::string> all;
    for (const Json& item : value.list()) {
      if (!item.is(Json::Kind::text)) refuse(key, value, "a list of strings");
      all.push_back(item.text());
    }
    return all;
  }

  [[noreturn]] void refuse(std::string_view key, const Json& value, std::string_view needed) const {
    fail_corrupt(text("checkpoint: training state: ", key, " must be ", needed, ", got ", value.dump()));
  }

 private:
  const Json& member(std::string_view key) const {
    const Json* value = object_.find(key);
    if (value == nullptr) fail_corrupt(text("checkpoint: training state: ", key, " is missing"));
    return *value;
  }

  [[noreturn]] void fail_corrupt(const std::string& message) const {
    Error error(Code::corrupt, text(message, " (", file_, ")"));
    error.place.file = file_;
    throw error;
  }

  const Json& object_;
  const std::string& file_;
};

}  // namespace

std::string TrainingState::json() const {
  JsonLine line;
  line.add("step", step).add("updates", updates).add("tokens", tokens).add("items", items);
  line.add("epoch", rows > 0 ? items / rows : 0).add_json("loss", exact(loss)).add_json("lr", exact(lr));
  line.add_json("loss_scaler", loss_scaler.empty() ? "null" : loss_scaler);
  line.add_json("gradient_noise", gradient_noise.empty() ? "null" : gradient_noise);
  line.add("seed", seed).add("batch", batch).add("micro_batches", micro_batches).add("rows", rows);
  std::vector<std::string> names;
  for (const std::string& field : fields) names.push_back(quoted(field));
  return line.add_json("fields", json_list(names)).add("kernels", kernels).add("graph", graph).add("data", data).text();
}

TrainingState parse_training_state(const Json& training, const std::string& file) {
  const Members from(training, file);
  TrainingState state;
  state.step = from.whole("step", 0, kCounted);
  state.updates = from.whole("updates", 0, state.step);
  state.tokens = from.whole("tokens", 0, kCounted);
  state.items = from.whole("items", 0, kCounted);
  state.loss = from.number("loss");
  state.lr = from.number("lr");
  state.loss_scaler = from.object_of("loss_scaler");
  state.gradient_noise = from.object_of("gradient_noise");
  state.seed = from.whole("seed", 0, kAny);
  state.batch = from.whole("batch", 1, kAny);
  state.micro_batches = from.whole("micro_batches", 1, kAny);
  state.rows = from.whole("rows", 0, kAny);
  state.fields = from.texts("fields");
  state.kernels = from.text_of("kernels");
  state.graph = from.known("graph");
  state.data = from.known("data");
  return state;
}

}  // namespace st
