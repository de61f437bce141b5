// Runs a list of passes: times each, checks the program after it, can skip a pass by name and print its result.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/program.h"

namespace st {

struct PassRecord {
  std::string name;
  double seconds = 0;
  bool skipped = false;
  int32_t nodes = 0;  // of all sections, after the pass
};

/// A row of a pass list.
struct Pass {
  std::string_view name;
  bool enabled;  // false: the plan has no use for it
  std::function<void(Program&)> run;
};

class Runner {
 public:
  /// `skip`: names of passes to skip. `print`: called with the pass's name and the program's text after each pass; may be empty.
  Runner(Program& program, std::vector<std::string> skip, std::function<void(const std::string& pass, const std::string& text)> print)
      : program_(program), skip_(std::move(skip)), print_(std::move(print)) {}

  /// Verifies the program after each pass, as where passes are printed. Else only ids are checked after a pass, since the next one reads by
  /// them, and the caller verifies the program after the last one.
  void verify_each() { verifies_each_ = true; }

  void run(const std::string& name, const std::function<void(Program&)>& pass);
  /// Runs the enabled passes in order.
  void run(std::span<const Pass> list);
  const std::vector<PassRecord>& records() const { return records_; }

 private:
  Program& program_;
  std::vector<std::string> skip_;
  std::function<void(const std::string&, const std::string&)> print_;
  std::vector<PassRecord> records_;
  bool verifies_each_ = false;
};

/// Returns run(false), which runs passes from the first on. If that ends with an error that a broken program may have caused, run(true)
/// runs them again and verifies after each: an internal error of that run names the pass that broke the program, and replaces the first.
template <class Run>
auto named(const Run& run) {
  try {
    return run(false);
  } catch (const Error& error) {
    if (error.code() != Code::internal && error.code() != Code::invalid_argument) throw;
    try {
      run(true);
    } catch (const Error& second) {
      if (second.code() == Code::internal) throw;
    }
    throw;
  }
}

}  // namespace st
