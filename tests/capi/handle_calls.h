// A call for each handle that a function of the library takes: valid but for that handle, which the test chooses. handle_rows.py holds the
// table to the headers and to the list of exported symbols.
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

  bool is_destroy() const { return std::string_view(function).ends_with("_destroy"); }
  /// A trainer needs no data, nor a checkpoint to save no more.
  bool may_be_null() const {
    return is_destroy() || (std::string_view(function).starts_with("st_trainer_create") && kind == std::string_view("data")) ||
           (function == std::string_view("st_trainer_save_every") && kind == std::string_view("checkpoint"));
  }
  /// For signal handlers: a failure is its status alone.
  bool has_message() const;
};

std::span<const HandleCall> handle_calls();

}  // namespace st::test
