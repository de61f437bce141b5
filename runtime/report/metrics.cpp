#include "report/metrics.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/os/files.h"
#include "base/os/whole_file.h"
#include "base/os/write_signals.h"

namespace st {
namespace {

constexpr std::string_view kStepKey = "{\"step\":";  // log_line() puts it first
constexpr std::string_view kEvaluationKey = "{\"evaluation\":", kLoss = "validation_loss", kMetric = "metric.";

[[noreturn]] void fail_io(const std::string& path, const char* verb) {
  Error error(Code::io, text("log: cannot ", verb, " ", path, ": ", std::strerror(errno)));
  error.place.file = path;
  throw error;
}

std::optional<int64_t> step_of_evaluation(std::string_view line) {
  return line.starts_with(kEvaluationKey) ? step_of_line(line.substr(kEvaluationKey.size())) : std::nullopt;
}

bool exists(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  std::fclose(file);
  return true;
}

}  // namespace

const std::string& log_line(JsonLine& line, const StepReport& r) {
  line.start();
  line.add("step", r.step).add("loss", r.loss).add("lr", r.lr).add("grad_norm", r.grad_norm).add("loss_scale", r.loss_scale);
  line.add("skipped", r.skipped).add("tokens", r.tokens).add("tokens_per_second", r.tokens_per_second);
  line.add("milliseconds", r.milliseconds).add("memory_bytes", r.memory_bytes);
  if (std::isfinite(r.gradient_noise_scale)) line.add("gradient_noise_scale", r.gradient_noise_scale);
  if (std::isfinite(r.exchange_milliseconds)) line.add("exchange_milliseconds", r.exchange_milliseconds);
  if (std::isfinite(r.exchange_hidden)) line.add("exchange_hidden", r.exchange_hidden);
  if (std::isfinite(r.straggler)) line.add("straggler", r.straggler);
  return line.finish();
}

const std::string& log_line(JsonLine& line, const ValidationPoint& evaluation, bool of_average) {
  JsonLine inner;
  inner.add("step", evaluation.step).add(of_average ? "ema_val_loss" : kLoss, evaluation.loss);
  for (const Metric& metric : evaluation.metrics) inner.add(metric.name, metric.mean);
  line.start();
  return line.add_json("evaluation", inner.text()).finish();
}

const std::string& log_line(JsonLine& line, std::string_view state, double validation_loss, std::optional<double> average_loss) {
  line.start();
  line.add("state", state).add("validation_loss", validation_loss);
  if (average_loss) line.add("ema_val_loss", *average_loss);
  return line.finish();
}

const std::string& exchange_line(JsonLine& line, std::string_view devices) {
  JsonLine inner;
  inner.add("devices", devices);
  line.start();
  return line.add_json("exchange", inner.text()).finish();
}

MetricsLog::MetricsLog(const std::string& path) : path_(path) { open("wb"); }

MetricsLog::MetricsLog(const std::string& path, int64_t resumed, const std::function<void(std::string_view kept)>& see) : path_(path) {
  if (exists(path)) {
    std::string kept;
    {
      const os::MappedFile file(path);
      const auto bytes = file.bytes();
      kept = log_until({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, resumed);
    }
    os::write_named_file(path, [&](const auto& write) { write(std::as_bytes(std::span(kept))); });
    for (const std::string_view line : lines_of(kept))
      if (const auto at = step_of_evaluation(line); at && *at == resumed) evaluated_.push_back(text(line, "\n"));
    if (see) see(kept);
  }
  open("ab");
}

void MetricsLog::write(const ValidationPoint& evaluation, bool of_average) {
  const std::string& line = log_line(line_, evaluation, of_average);
  if (std::ranges::find(evaluated_, line) == evaluated_.end()) append(line);
}

void MetricsLog::open(const char* mode) {
  file_.reset(std::fopen(path_.c_str(), mode));
  if (!file_) fail_io(path_, "open");
}

void MetricsLog::append(std::string_view json) {
  const os::WriteSignalsBlocked blocked;
  // A line is far smaller than stdio's buffer, which is empty here: the flush hands it over in one write.
  const bool written = std::fwrite(json.data(), 1, json.size(), file_.get()) == json.size();
  if (!written || std::fflush(file_.get()) != 0) fail_io(path_, "write to");
}

std::optional<int64_t> step_of_line(std::string_view line) {
  if (!line.starts_with(kStepKey)) return std::nullopt;
  int64_t step = 0;
  const char* begin = line.data() + kStepKey.size();
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), step);
  if (error != std::errc() || end == begin) return std::nullopt;
  return step;
}

std::optional<StepReport> report_of_line(std::string_view line) {
  const auto step = step_of_line(line);
  if (!step) return std::nullopt;
  try {
    const Json object = parse_json(line, "log");
    const auto real = [&](const char* key) {
      const Json* value = object.find(key);
      return value != nullptr && value->is_number() ? value->number() : std::numeric_limits<double>::quiet_NaN();
    };
    const auto whole = [&](const char* key) {
      const Json* value = object.find(key);
      return value != nullptr && value->is(Json::Kind::whole) ? value->whole() : 0;
    };
    const Json* skipped = object.find("skipped");
    return StepReport{.step = *step,
                      .loss = real("loss"),
                      .lr = real("lr"),
                      .grad_norm = real("grad_norm"),
                      .loss_scale = real("loss_scale"),
                      .skipped = skipped != nullptr && skipped->is(Json::Kind::boolean) && skipped->boolean(),
                      .tokens = whole("tokens"),
                      .tokens_per_second = real("tokens_per_second"),
                      .milliseconds = real("milliseconds"),
                      .memory_bytes = whole("memory_bytes"),
                      .gradient_noise_scale = real("gradient_noise_scale"),
                      .exchange_milliseconds = real("exchange_milliseconds"),
                      .exchange_hidden = real("exchange_hidden"),
                      .straggler = real("straggler")};
  } catch (const Error&) {
    return std::nullopt;  // torn, or another program's
  }
}

std::optional<ValidationPoint> evaluation_of_line(std::string_view line) {
  if (!line.starts_with(kEvaluationKey)) return std::nullopt;
  try {
    const Json object = parse_json(line, "log");
    const Json& evaluation = *object.find("evaluation");
    const Json* loss = evaluation.find(kLoss);
    if (loss == nullptr) return std::nullopt;  // of the average
    const auto real = [](const Json& value) { return value.is_number() ? value.number() : std::numeric_limits<double>::quiet_NaN(); };
    ValidationPoint point{.step = step_of_evaluation(line).value_or(0), .loss = real(*loss)};
    for (const auto& [name, value] : evaluation.members())
      if (name.starts_with(kMetric)) point.metrics.push_back({name, real(value)});
    return point;
  } catch (const Error&) {
    return std::nullopt;  // torn, or another program's
  }
}

std::string_view log_until(std::string_view log, int64_t step) {
  size_t kept = 0;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = log.find('\n', begin);
    if (end == std::string_view::npos) break;
    const std::string_view line = log.substr(begin, end - begin);
    if (const auto at = line.starts_with(kEvaluationKey) ? step_of_evaluation(line) : step_of_line(line)) {
      if (*at > step) break;
      kept = end + 1;
    }
    begin = end + 1;
  }
  return log.substr(0, kept);
}

}  // namespace st
