// The host's arrays of one prediction, checked against the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/host_view.h"
#include "ir/program.h"

namespace st {

class PredictionViews {
 public:
  /// `inputs` may have more than the outputs depend on. Borrows all arguments. Throws not_found for a name that the model does not have
  /// (suggests the nearest), invalid_argument without outputs, for a name given twice, outputs that share memory, a type, shape or number
  /// of rows that does not fit.
  PredictionViews(const Program& model, std::span<const HostView> inputs, std::span<const HostView> outputs);

  /// Rows of every view whose shape has some; 1 if none has.
  int64_t rows() const { return rows_; }
  /// Throws invalid_argument, with an output that depends on it, if this input is not given, and not_finite if it
  /// holds NaN, for which a view on the device is not searched.
  const HostView& input(const std::string& name) const;

 private:
  void look(const char* what, const HostView& view, const Type& type);
  std::string reader_of(const std::string& input) const;

  const Program& model_;
  const std::span<const HostView> inputs_, outputs_;
  int64_t rows_ = -1;
  std::string_view first_;  // the view that gave the number of rows
};

}  // namespace st
