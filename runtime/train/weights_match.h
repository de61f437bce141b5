// Which tensor of a safetensors file or a checkpoint goes into which parameter of a model: renames, what is missing, what is left over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors_header.h"
#include "ir/program.h"

namespace st {

struct Rename {
  std::string from;  // in the stream: a name; "*", once, stands for any text
  std::string to;    // in the model, "*" standing for what from's stood for
};

struct ReadOptions {
  bool partial = false;                 // what fits by name is read; else every parameter must be there and nothing else
  std::vector<Rename> renames;          // the first that fits counts
  std::vector<std::string> names = {};  // patterns (glob.h) of the model's names that are asked for; empty: all. Others are passed over

  bool asks_for(std::string_view name) const;
  /// What a tensor of the stream is called in the model.
  std::string renamed(const std::string& name) const;
};

struct ReadReport {
  int64_t read = 0;
  std::vector<std::string> missing;     // parameters, in the model's order
  std::vector<std::string> unexpected;  // tensors as the stream calls them, in its order; the foreign ones last
};

/// Throws invalid_argument for renames that cannot be.
void check_renames(const ReadOptions& options);

struct WeightsMatch {
  std::vector<SlotId> parameters;  // by tensor; -1: none takes it
};

/// Fills the report's names, also when it then throws: invalid_argument for renames that cannot be, a pattern that no parameter's name
/// matches, two tensors for one parameter, another shape or a dtype that is not floating; not_found for a missing parameter and
/// invalid_argument for an unexpected tensor unless partial. `foreign` are tensors too, which can only be passed over: one that a parameter
/// would take is refused. `source` names the stream in messages.
WeightsMatch match_weights(const std::vector<TensorRecord>& tensors, const Program& program, const std::vector<SlotId>& parameters,
                           const ReadOptions& options, const std::string& source, ReadReport& report,
                           const std::vector<ForeignTensor>& foreign = {});

/// Weights that come from outside a run hold no NaN, whether they are set, read or loaded. Throws not_finite for the first one among these
/// elements of a tensor of `source`, the first of which is its element `first`.
void require_no_nan(const TensorRecord& record, const std::byte* elements, int64_t first, int64_t count, const std::string& source);
/// That error, for element `at`.
[[noreturn]] void refuse_nan(const std::string& tensor, int64_t at, const std::string& source);

}  // namespace st
