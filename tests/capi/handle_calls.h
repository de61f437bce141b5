// A call for each handle argument of each function of the library: valid except for that handle, which the test chooses. handle_rows.py
// compares the table with the headers and the list of exported symbols.
#pragma once

#include <span>
#include <string_view>

#include "all_kinds.h"

namespace st::test {

struct HandleCall {
  const char* function;
  const char* argument;  // its name in the header
  const char* kind;
  st_status (*call)(AllKinds& w, AnyHandle h);

  /// The function, or the local one of a pair: "st_model_get" also for st_model_get_collective. Without a group both do the same.
  std::string_view local_function() const {
    std::string_view name = function;
    if (name.ends_with("_collective")) name.remove_suffix(std::string_view("_collective").size());
    return name;
  }
  bool is_destroy() const { return std::string_view(function).ends_with("_destroy"); }
  /// A trainer needs no data, and st_trainer_save_every accepts NULL to stop saving.
  bool may_be_null() const {
    return is_destroy() || (std::string_view(function).starts_with("st_trainer_create") && kind == std::string_view("data")) ||
           (local_function() == "st_trainer_save_every" && kind == std::string_view("checkpoint"));
  }
  /// Calls for signal handlers report a failure by their status alone.
  bool has_message() const;
};

std::span<const HandleCall> handle_calls();

}  // namespace st::test
