#include "team/run_identity.h"

#include "base/error.h"
#include "base/text.h"

namespace st {
namespace {

std::string data_of(const RunIdentity& run) {
  if (run.fields.empty()) return "none";
  std::string all = text(run.rows, " rows of ");
  for (const std::string& field : run.fields) all += text(&field == &run.fields.front() ? "" : ", ", field);
  return all;
}

}  // namespace

std::vector<std::string> texts_of(std::span<const Field> fields) {
  std::vector<std::string> all;
  for (const Field& field : fields) all.push_back(text(field.name, " ", field.dtype, " ", field.shape));
  return all;
}

void require_same_run(const RunIdentity& here, const RunIdentity& there) {
  const auto same = [](const char* what, const auto& mine, const auto& theirs, const std::string& with) {
    check(mine == theirs, "resume: ", what, " is ", mine, " here and ", theirs, " in the checkpoint; make the trainer with ", with,
          ", or load only the weights into a model");
  };
  same("seed", here.seed, there.seed, text("\"seed\": ", there.seed));
  same("batch", here.batch, there.batch, text("\"batch\": ", there.batch));
  same("micro-batches of a step", here.micro_batches, there.micro_batches, text("\"micro_batches\": ", there.micro_batches));
  same("the data", data_of(here), data_of(there), "the same data");
  check(here.data.empty() || there.data.empty() || here.data == there.data,
        "resume: the data has the same number of rows here as in the checkpoint but other values; train on the same data, or load only "
        "the weights into a model");
}

}  // namespace st
