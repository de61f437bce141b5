// Matches the tensors of a safetensors file or a checkpoint with a model's parameters: renames, missing and unexpected tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors_header.h"
#include "ir/program.h"

namespace st {

struct Rename {
  std::string from;  // name in the stream; may have one "*", which matches any text
  std::string to;    // name in the model; its "*" is replaced by the text that from's "*" matched
};

struct ReadOptions {
  bool partial = false;                 // true: reads what matches by name; false: needs exactly all parameters
  std::vector<Rename> renames;          // the first that matches applies
  std::vector<std::string> names = {};  // patterns (glob.h) of the model's names to read; empty: all. Others are skipped

  bool asks_for(std::string_view name) const;
  /// The model's name for a tensor of the stream.
  std::string renamed(const std::string& name) const;
};

struct ReadReport {
  int64_t read = 0;
  std::vector<std::string> missing;     // parameters, in the model's order
  std::vector<std::string> unexpected;  // names in the stream, in its order; foreign tensors last
};

/// Throws invalid_argument for invalid renames.
void check_renames(const ReadOptions& options);

struct WeightsMatch {
  std::vector<SlotId> parameters;  // by tensor; -1: no parameter takes it
};

/// Fills the report's names, even if it throws afterwards. `source` names the stream in messages.
///   invalid_argument   invalid renames; a pattern that matches no parameter; two tensors for one parameter; a wrong shape; a dtype that is
///                      not floating; a foreign tensor whose name is a parameter's; unless partial, an unexpected tensor
///   code_of_missing    a missing parameter, unless partial. Readers of checkpoints pass invalid_argument, because their not_found says
///   that
///                      a folder holds no checkpoint
/// `foreign` tensors can only be skipped.
WeightsMatch match_weights(const std::vector<TensorRecord>& tensors, const Program& program, const std::vector<SlotId>& parameters,
                           const ReadOptions& options, const std::string& source, ReadReport& report, Code code_of_missing,
                           const std::vector<ForeignTensor>& foreign = {});

/// Refuses NaN in weights from outside a run (set, read or loaded): throws not_finite for the first NaN among `count` elements of a tensor
/// of `source`, starting at its element `first`.
void require_no_nan(const TensorRecord& record, const std::byte* elements, int64_t first, int64_t count, const std::string& source);
/// Throws that error for element `at`.
[[noreturn]] void refuse_nan(const std::string& tensor, int64_t at, const std::string& source);

}  // namespace st
