#include "model/weights_match.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/glob.h"
#include "base/host_view.h"

namespace st {
namespace {

int64_t stars(std::string_view text) { return std::ranges::count(text, '*'); }

void check_rename(const Rename& rename) {
  const auto& [from, to] = rename;
  check(!from.empty() && !to.empty(), "read: rename from \"", from, "\" to \"", to, "\": both names must be given");
  check(stars(from) <= 1, "read: rename from \"", from, "\": \"*\" may occur only once");
  check(stars(to) == stars(from), "read: rename from \"", from, "\" to \"", to, "\": use \"*\" once on both sides, or on neither");
}

[[noreturn]] void refuse(Code code, const std::string& source, const std::string& tensor, std::string message) {
  Error error(code, std::move(message));
  error.place.file = source;
  error.place.tensor = tensor;
  throw error;
}

constexpr std::string_view kReadable = "must be F32, F64, BF16 or F16";

/// `"h.0.weight" (read as "block.0.weight") in model.safetensors is `
std::string begin_of_refusal(const std::string& tensor, const std::string& slot, const std::string& source) {
  return text("read: tensor \"", tensor, "\"", tensor == slot ? "" : text(" (read as \"", slot, "\")"), " in ", source, " is ");
}

/// Checks tensors whose names match before others are reported missing or unexpected: a wrong shape is the more useful error.
void check_fit(const TensorRecord& record, const Slot& slot, const std::string& source) {
  const std::string begin = begin_of_refusal(record.name, slot.name, source);
  if (record.shape != slot.type.shape)
    refuse(Code::invalid_argument, source, record.name,
           text(begin, record.shape, ", the model's is ", slot.type.shape, "; make the model with the sizes of ", source,
                ", or exclude the tensor by names"));
  if (!is_floating(record.dtype))
    refuse(Code::invalid_argument, source, record.name, text(begin, safetensors_name(record.dtype), ", ", kReadable));
}

[[noreturn]] void refuse_foreign(const ForeignTensor& tensor, const std::string& slot, const std::string& source) {
  refuse(Code::invalid_argument, source, tensor.name,
         text(begin_of_refusal(tensor.name, slot, source), tensor.dtype, " ", std::span(tensor.shape), ", ", kReadable, " of at most ",
              kMaxDims, " dimensions; convert it, or exclude it by the options' names"));
}

void check_patterns(const ReadOptions& options, const Program& program, const std::vector<SlotId>& parameters) {
  for (const std::string& pattern : options.names) {
    const auto fits = [&](SlotId id) { return matches_glob(pattern, program.slot(id).name); };
    check(std::ranges::any_of(parameters, fits), "read: no parameter of the model matches \"", pattern, "\"; * matches any text");
  }
}

}  // namespace

bool ReadOptions::asks_for(std::string_view name) const {
  return names.empty() || std::ranges::any_of(names, [&](const std::string& pattern) { return matches_glob(pattern, name); });
}

std::string ReadOptions::renamed(const std::string& name) const {
  for (const auto& [from, to] : renames) {
    const size_t star = from.find('*');
    if (star == std::string::npos) {
      if (name == from) return to;
      continue;
    }
    const std::string_view start = std::string_view(from).substr(0, star), end = std::string_view(from).substr(star + 1);
    if (name.size() < start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end)) continue;
    std::string result = to;
    return result.replace(to.find('*'), 1, name, start.size(), name.size() - start.size() - end.size());
  }
  return name;
}

void check_renames(const ReadOptions& options) {
  for (const Rename& rename : options.renames) check_rename(rename);
}

WeightsMatch match_weights(const std::vector<TensorRecord>& tensors, const Program& program, const std::vector<SlotId>& parameters,
                           const ReadOptions& options, const std::string& source, ReadReport& report, Code code_of_missing,
                           const std::vector<ForeignTensor>& foreign) {
  check_renames(options);
  check_patterns(options, program, parameters);
  const auto slot = [&](SlotId id) -> const Slot& { return program.slot(id); };
  std::map<std::string_view, SlotId> by_name;
  for (const SlotId id : parameters) by_name.emplace(slot(id).name, id);

  WeightsMatch match;
  std::map<SlotId, const TensorRecord*> taken;
  const TensorRecord* twice = nullptr;
  for (const TensorRecord& record : tensors) {
    const std::string name = options.renamed(record.name);
    const auto found = options.asks_for(name) ? by_name.find(name) : by_name.end();
    match.parameters.push_back(found == by_name.end() ? -1 : found->second);
    if (!options.asks_for(name)) continue;
    if (found == by_name.end())
      report.unexpected.push_back(record.name);
    else if (!taken.emplace(found->second, &record).second && twice == nullptr)
      twice = &record;
  }
  const ForeignTensor* asked_for = nullptr;
  for (const ForeignTensor& tensor : foreign) {
    const std::string name = options.renamed(tensor.name);
    if (!options.asks_for(name)) continue;
    if (!by_name.contains(name))
      report.unexpected.push_back(tensor.name);
    else if (asked_for == nullptr)
      asked_for = &tensor;
  }
  for (const SlotId id : parameters)
    if (!taken.contains(id) && options.asks_for(slot(id).name)) report.missing.push_back(slot(id).name);

  if (twice != nullptr) {
    const SlotId id = match.parameters[static_cast<size_t>(twice - tensors.data())];
    refuse(Code::invalid_argument, source, twice->name,
           text("read: ", source, " has two tensors for parameter \"", slot(id).name, "\": \"", taken[id]->name, "\" and \"", twice->name,
                "\"; rename one of them"));
  }
  if (asked_for != nullptr) refuse_foreign(*asked_for, options.renamed(asked_for->name), source);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (match.parameters[i] >= 0) check_fit(tensors[i], slot(match.parameters[i]), source);
  if (options.partial) return match;
  if (!report.missing.empty()) {
    std::vector<std::string> names;
    for (const TensorRecord& record : tensors) names.push_back(record.name);
    const std::string& first = report.missing.front();
    const std::string near = nearest(first, names);
    refuse(code_of_missing, source, first,
           text("read: ", source, " has no tensor \"", first, "\"", near.empty() ? "" : text("; did you mean \"", near, "\"?"), " (",
                report.missing.size(), " missing, ", report.unexpected.size(), " unexpected); rename, or read with partial"));
  }
  if (!report.unexpected.empty())
    refuse(Code::invalid_argument, source, report.unexpected.front(),
           text("read: ", source, " holds tensor \"", report.unexpected.front(), "\", which the model does not have (",
                report.unexpected.size(), " unexpected); rename, or read with partial"));
  return match;
}

void require_no_nan(const TensorRecord& record, const std::byte* elements, int64_t first, int64_t count, const std::string& source) {
  const int64_t at = first_nan(plain_view(record.name, record.dtype, {count}, elements));
  if (at >= 0) refuse_nan(record.name, first + at, source);
}

void refuse_nan(const std::string& tensor, int64_t at, const std::string& source) {
  refuse(Code::not_finite, source, tensor,
         text("read: tensor \"", tensor, "\" in ", source, " holds NaN at element ", at,
              "; nothing has changed. Give weights without NaN, such as those of an earlier checkpoint"));
}

}  // namespace st
