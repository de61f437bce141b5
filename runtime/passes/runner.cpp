#include "passes/runner.h"

#include <algorithm>

#include "base/os/machine.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace st {

void Runner::run(const std::string& name, const std::function<void(Program&)>& pass) {
  PassRecord record{.name = name};
  if (std::ranges::find(skip_, name) != skip_.end()) {
    record.skipped = true;
  } else {
    const double start = os::seconds();
    pass(program_);
    if (verifies_each_ || print_)
      verify(program_, name);
    else
      verify_ids(program_, name);
    record.seconds = os::seconds() - start;
    if (print_) print_(name, print(program_));
  }
  for (const Section& section : program_.sections) record.nodes += section.graph.size();
  records_.push_back(record);
}

void Runner::run(std::span<const Pass> list) {
  for (const Pass& pass : list)
    if (pass.enabled) run(std::string(pass.name), pass.run);
}

}  // namespace st
