// scaletrain checkpoint: inspects, verifies, reshards, exports and imports checkpoints.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "checkpoint_folder.h"
#include "checkpoint_table.h"
#include "interchange.h"
#include "progress.h"
#include "safetensors_file.h"

namespace cli {
namespace {

constexpr const char* kVerbs = "; use inspect, verify, hash, reshard, export or import";

void inspect(const CheckpointRequest& o) {
  if (is_weights(o.first)) {
    const Json weights = inspect_weights(o.first);
    if (!o.json) return print_weights(weights);
    std::printf("%s\n", weights.dump(2).c_str());
    return;
  }
  const CheckpointFolder folder(o.first);
  const char* json = nullptr;
  folder.newest([&](const char* name) { return st_checkpoint_inspect(folder.handle(), name, &json); });
  const Json manifest = Json::parse(json);
  if (o.json)
    std::printf("%s\n", manifest.dump(2).c_str());
  else
    print_checkpoint(manifest);
}

/// Returns {"name", "bytes" of its files (0 if it is not whole), "problems"} for one checkpoint.
Json verify_one(const CheckpointFolder& folder, const CheckpointFolder::Entry& entry) {
  Json result = {{"name", entry.name}, {"bytes", 0}, {"problems", Json::array()}};
  if (!entry.problem.empty()) {
    result["problems"].push_back({{"message", entry.problem}});
    return result;
  }
  const char* json = nullptr;
  check_folder(st_checkpoint_verify(folder.handle(), folder.key(entry.name), &json));
  result["problems"] = Json::parse(json)["problems"];
  if (!result["problems"].empty()) return result;
  int64_t bytes = 0;
  const Json manifest = folder.manifest(entry.name);
  for (const Json& file : manifest["files"]) bytes += file["bytes"].get<int64_t>();
  result["bytes"] = bytes;
  return result;
}

void verify(const CheckpointRequest& o) {
  const CheckpointFolder folder(o.first);
  Json all = Json::array();
  size_t broken = 0;
  for (const CheckpointFolder::Entry& entry : folder.entries()) {
    all.push_back(verify_one(folder, entry));
    const Json& result = all.back();
    broken += result["problems"].empty() ? 0 : 1;
    if (o.json) continue;
    if (result["problems"].empty())
      std::printf("%s: whole, %s bytes\n", entry.name.c_str(), with_commas(result["bytes"].get<int64_t>()).c_str());
    for (const Json& problem : result["problems"])
      std::printf("%s: %s\n", entry.name.c_str(), problem["message"].get<std::string>().c_str());
  }
  if (o.json) std::printf("%s\n", Json{{"checkpoints", all}}.dump(2).c_str());
  if (broken > 0)
    throw Failure(kFailed, "checkpoint verify: " + std::to_string(broken) + " of " + std::to_string(all.size()) + " in " + o.first +
                               (broken == 1 ? " is" : " are") + " not whole");
}

/// The digest of the newest whole checkpoint; reading it verifies it.
void hash(const CheckpointRequest& o) {
  const CheckpointFolder folder(o.first);
  const char* hex = nullptr;
  folder.newest([&](const char* name) { return st_checkpoint_hash(folder.handle(), name, &hex); });
  std::printf("%s\n", hex);
}

void reshard(const CheckpointRequest& o) {
  const int64_t shards = whole_number("--shards", o.shards.empty() ? "0" : o.shards);
  if (shards < 0 || shards > 4096) refuse("--shards is ", shards, "; give 1 to 4096, or 0 for whole tensors");
  const CheckpointFolder folder(o.first);
  folder.newest(
      [&](const char* name) { return st_checkpoint_reshard(folder.handle(), name, o.second.c_str(), static_cast<int32_t>(shards)); });
  std::printf("%s\n", o.second.c_str());
}

void refuse_stray(const CheckpointRequest& o) {
  const bool is_export = o.verb == "export", is_import = o.verb == "import";
  if (!o.shards.empty() && o.verb != "reshard") refuse("checkpoint ", o.verb, ": --shards is an option of reshard");
  if (o.json && o.verb != "inspect" && o.verb != "verify") refuse("checkpoint ", o.verb, ": --json is an option of inspect and verify");
  if ((o.everything || !o.format.empty()) && !is_export) refuse("checkpoint ", o.verb, ": --everything and --format are options of export");
  if (!o.map.empty() && !is_export && !is_import) refuse("checkpoint ", o.verb, ": --map is an option of export and import");
  if (!o.step.empty() && !is_import) refuse("checkpoint ", o.verb, ": --step is an option of import");
}

int run_checkpoint(const CheckpointRequest& o) {
  struct Verb {
    const char *name, *second;  // second: meaning of the second argument; nullptr if there is none
    void (*run)(const CheckpointRequest& o);
  };
  constexpr Verb kAll[] = {{"inspect", nullptr, inspect},  {"verify", nullptr, verify},           {"hash", nullptr, hash},
                           {"reshard", "folder", reshard}, {"export", "file", export_checkpoint}, {"import", "folder", import_checkpoint}};
  if (o.verb.empty()) refuse("checkpoint: no command given", kVerbs);
  const auto* verb = std::ranges::find(kAll, o.verb, &Verb::name);
  if (verb == std::end(kAll)) refuse("checkpoint: unknown command ", o.verb, kVerbs);
  refuse_stray(o);
  if (o.first.empty())
    refuse("checkpoint ", o.verb, ": name a ", o.verb == "import" ? "file, or a folder of weights" : "run's folder, or one checkpoint");
  if (verb->second != nullptr && o.second.empty()) refuse("checkpoint ", o.verb, ": name the ", verb->second, " to write to");
  if (verb->second == nullptr && !o.second.empty()) refuse("checkpoint ", o.verb, ": unexpected argument \"", o.second, "\"");
  verb->run(o);
  return kDone;
}

}  // namespace

Command checkpoint_command(CLI::App& app) {
  auto o = std::make_shared<CheckpointRequest>();
  CLI::App* command =
      app.add_subcommand("checkpoint",
                         "inspect DIR, verify DIR, hash DIR, reshard DIR TO, export DIR FILE, import FILE DIR; DIR is a run's "
                         "folder (its newest whole checkpoint; verify: all of them) or one checkpoint");
  command->add_option("verb", o->verb, "inspect, verify, hash, reshard, export, import");
  command->add_option("from", o->first,
                      "source: a run's folder or one checkpoint; import and inspect: also a .safetensors file, a folder that has one, "
                      "or the .index.json of its shards; import: also a .pt file of torch.save");
  command->add_option("to", o->second,
                      "destination: reshard: a folder; export: a file; import: a run's folder, which gets a new checkpoint");
  command->add_flag("--json", o->json, "inspect, verify: one JSON object");
  add_text(*command, "--shards", o->shards, "reshard: files of each kind with equal parts of each tensor; 0: whole tensors [0]");
  command->add_flag("--everything", o->everything, "export: also optimizer state and averages");
  add_text(*command, "--format", o->format,
           "export: safetensors, or torch: weights and optimizer state as torch.save writes them [safetensors]");
  add_text(*command, "--map", o->map, "export, import: gpt2 or llama: the file has the weights of Hugging Face's GPT-2 or Llama");
  add_text(*command, "--step", o->step, "import: step of the checkpoint, if the file does not have it [0]");
  return {command, [o] { return run_checkpoint(*o); }};
}

}  // namespace cli
