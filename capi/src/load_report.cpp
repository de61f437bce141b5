#include "load_report.h"

#include "guard.h"

namespace st::capi {

void LoadReport::give(st_load_report* theirs) {
  if (theirs == nullptr) return;
  texts_.clear();
  for (const auto* list : {&missing, &unexpected, &skipped, &changed})
    for (const std::string& line : *list) texts_.push_back(line.c_str());
  st_load_report ours{};
  ours.step = step;
  ours.name = name.c_str();
  ours.metadata = metadata.c_str();
  ours.read = read;
  ours.missing_count = std::ssize(missing);
  ours.unexpected_count = std::ssize(unexpected);
  ours.skipped_count = std::ssize(skipped);
  ours.changed_count = std::ssize(changed);
  ours.missing = texts_.data();
  ours.unexpected = ours.missing + ours.missing_count;
  ours.skipped = ours.unexpected + ours.unexpected_count;
  ours.changed = ours.skipped + ours.skipped_count;
  capi::give(theirs, ours, "load report");
}

}  // namespace st::capi
