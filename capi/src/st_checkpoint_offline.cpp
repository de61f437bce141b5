// Checkpoints outside of a run: list, inspect, verify, and convert them.
#include <scaletrain/checkpoint.h>

#include "base/json_line.h"
#include "checkpoint/export_weights.h"
#include "checkpoint/reshard.h"
#include "checkpoint_choice.h"
#include "context_object.h"

using namespace st;
using namespace st::capi;

namespace {

constexpr int64_t kToldProblems = 100;

/// Uses the newest whole checkpoint, for a host that does not ask which ones were skipped.
template <class Use>
void with_whole(CheckpointObject& object, const char* name, const Use& use) {
  std::vector<std::string> skipped;
  with_checkpoint(object, name, skipped, use);
}

void answer(CheckpointObject& object, std::string text, const char** out) {
  object.answer = std::move(text);
  *out = object.answer.c_str();
}

std::string row_of(const CheckpointEntry& entry) {
  JsonLine row;
  row.add("name", entry.name).add("step", entry.step);
  if (entry.problem.empty())
    row.add_json("problem", "null");
  else
    row.add("problem", entry.problem);
  return row.text();
}

/// The entry of a folder that is itself a checkpoint.
CheckpointEntry entry_of_one(const CheckpointObject& object) {
  CheckpointEntry entry;
  entry.name = object.folder.path();
  try {
    const CheckpointReader reader(object.folder.path());
    entry.name = reader.manifest().checkpoint;
    entry.step = reader.manifest().step;
  } catch (const Error& error) {
    entry.problem = error.message();
  }
  return entry;
}

std::string row_of(const CheckpointProblem& problem) {
  JsonLine row;
  row.add("file", problem.file).add("tensor", problem.tensor);
  row.add("block", problem.block).add("offset", problem.offset).add("message", problem.message);
  return row.text();
}

}  // namespace

st_status st_checkpoint_list(st_checkpoint* checkpoint, const char** json) {
  return guard([&] {
    given(json, "st_checkpoint_list: json");
    const auto object = find(checkpoint);
    std::vector<std::string> rows;
    if (object->is_one)
      rows.push_back(row_of(entry_of_one(*object)));
    else
      for (const CheckpointEntry& entry : object->folder.list()) rows.push_back(row_of(entry));
    answer(*object, json_list(rows), json);
  });
}

st_status st_checkpoint_inspect(st_checkpoint* checkpoint, const char* name, const char** json) {
  return guard([&] {
    given(json, "st_checkpoint_inspect: json");
    const auto object = find(checkpoint);
    answer(*object, describe(CheckpointReader(folder_of(*object, name)).manifest()), json);
  });
}

st_status st_checkpoint_verify(st_checkpoint* checkpoint, const char* name, const char** json) {
  return guard([&] {
    given(json, "st_checkpoint_verify: json");
    const auto object = find(checkpoint);
    const std::string folder = folder_of(*object, name);
    std::vector<std::string> problems;
    for (const CheckpointProblem& problem :
         CheckpointReader::problems_of(folder, *object->workers, kToldProblems, cancelled_from_now(*object->context)))
      problems.push_back(row_of(problem));
    JsonLine line;
    line.add("name", std::string_view(folder).substr(folder.rfind('/') + 1)).add_json("problems", json_list(problems));
    answer(*object, line.text(), json);
  });
}

st_status st_checkpoint_hash(st_checkpoint* checkpoint, const char* name, const char** hex) {
  return guard([&] {
    given(hex, "st_checkpoint_hash: hex");
    const auto object = find(checkpoint);
    with_whole(*object, name, [&](const CheckpointReader& reader) { answer(*object, reader.digest(), hex); });
  });
}

st_status st_checkpoint_reshard(st_checkpoint* checkpoint, const char* name, const char* folder, int32_t shards) {
  return guard([&] {
    const std::string to = text_given(folder, "st_checkpoint_reshard: folder");
    check(!to.empty(), "st_checkpoint_reshard: folder is empty; name a folder");
    check(shards >= 0 && shards <= 4096, "st_checkpoint_reshard: shards is ", shards, "; it must be 0 to 4096");
    const auto object = find(checkpoint);
    with_whole(*object, name, [&](const CheckpointReader& reader) { reshard(reader, to, shards, object->writing); });
  });
}

st_status st_checkpoint_export(st_checkpoint* checkpoint, const char* name, const char* path, int32_t everything) {
  return guard([&] {
    const std::string to = text_given(path, "st_checkpoint_export: path");
    check(!to.empty(), "st_checkpoint_export: path is empty; name the file to write");
    const auto object = find(checkpoint);
    with_whole(*object, name, [&](const CheckpointReader& reader) { export_weights(reader, to, everything != 0); });
  });
}
