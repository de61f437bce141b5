#include "interchange.h"

#include <unistd.h>

#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint_folder.h"
#include "hugging_face_config.h"
#include "llama_weights.h"
#include "model_choice.h"
#include "progress.h"
#include "safetensors_file.h"
#include "torch_export.h"
#include "torch_import.h"

namespace cli {
namespace {

/// The newest whole checkpoint as one temporary file next to the destination, removed at the end. The library has verified each byte of it.
class ExportedFile {
 public:
  ExportedFile(const CheckpointFolder& folder, const std::string& beside, bool everything)
      : path_(beside + ".all-" + std::to_string(getpid())), name_(folder.newest([&](const char* name) {
          return st_checkpoint_export(folder.handle(), name, path_.c_str(), everything ? 1 : 0);
        })) {}
  ~ExportedFile() { unlink(path_.c_str()); }
  ExportedFile(const ExportedFile&) = delete;
  ExportedFile& operator=(const ExportedFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }

 private:
  std::string path_, name_;
};

void export_renamed(const CheckpointFolder& folder, const CheckpointRequest& o, const NameMap& names) {
  const ExportedFile all(folder, o.second, false);
  StoredWeights weights = read_safetensors(all.path());
  for (StoredTensor& tensor : weights.tensors) tensor.name = names.theirs(tensor.name);
  write_safetensors(o.second, std::move(weights.tensors), {{"format", "pt"}});  // transformers requires this key
}

void export_as_llama(const CheckpointFolder& folder, const CheckpointRequest& o) {
  const ExportedFile all(folder, o.second, false);
  StoredWeights weights = read_safetensors(all.path());
  std::deque<std::string> made;
  export_llama(weights.tensors, made);
  write_safetensors(o.second, std::move(weights.tensors), {{"format", "pt"}});
}

void export_torch(const CheckpointFolder& folder, const CheckpointRequest& o, const NameMap& names) {
  const ExportedFile all(folder, o.second, true);
  const StoredWeights weights = read_safetensors(all.path());
  write_torch_file(o.second, folder.manifest(all.name()), weights.tensors, names);
}

/// Whether --map is llama, whose names a NameMap does not have.
bool maps_llama(const CheckpointRequest& o) { return o.map == "llama"; }

/// By its first bytes: a safetensors file starts with a length and a brace, a zip archive with PK.
bool is_archive(const MappedFile& file) { return file.bytes().starts_with("PK"); }

/// Before PyTorch 1.6, torch.save wrote a sequence of pickles that starts with this magic number.
bool is_old_torch_file(const MappedFile& file) {
  constexpr std::string_view kMagic("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19", 14);
  return file.bytes().starts_with(kMagic);
}

/// Refuses a config.json with keys that the library does not support, and prints those that have no effect.
void check_config(const Json& model, const std::string& source) {
  st_context_options options;
  ask(st_context_options_init(&options, sizeof options));
  options.late_parameters = 1;  // the model is only inspected
  options.log = [](void*, int32_t, const char* area, const char* text) {
    if (std::string_view(area) == "model") std::printf("%s\n", text);
  };
  const Context context = make<Context>(st_context_create, &options);
  st_model* made = nullptr;
  const st_status status =
      st_model_builtin(context.get(), model["name"].get<std::string>().c_str(), model["options"].dump().c_str(), 0, &made);
  const Model held(made);
  if (status != ST_OK) refuse("checkpoint import: ", source, ": ", st_last_error());
}

/// "tensor w holds NaN at element 3"; "" if none does.
std::string nan_in(const std::vector<StoredTensor>& tensors) {
  for (const StoredTensor& tensor : tensors)
    if (const int64_t at = first_nan(tensor); at >= 0) return "tensor " + tensor.name + " holds NaN at element " + std::to_string(at);
  return "";
}

}  // namespace

std::string list_of(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

TorchImport read_weights(const std::string& path, NameMap names, bool weights_alone) {
  std::deque<MappedFile> file;
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown)) {
    file.emplace_back(path);
    if (is_archive(file.front())) {
      TorchImport made = read_torch_file(file.front(), names, weights_alone);
      made.files = std::move(file);
      return made;
    }
    if (is_old_torch_file(file.front()))
      refuse("checkpoint import: ", path, " was written by torch.save before PyTorch 1.6; load it there and save it again");
  }
  StoredWeights found = read_safetensors(path);
  TorchImport made;
  made.files = std::move(found.files);
  made.tensors = std::move(found.tensors);
  made.not_taken = std::move(found.foreign);
  made.metadata = std::move(found.metadata);
  made.stripped = names.unwrap(made.tensors);
  names.drop_copies(made.tensors);
  for (StoredTensor& tensor : made.tensors) tensor.name = names.ours(tensor.name);
  return made;
}

namespace {

void save(const std::string& folder, int64_t step, const std::vector<StoredTensor>& tensors, const Json& metadata) {
  const Context context = make<Context>(st_context_create, nullptr);
  st_checkpoint_options options;
  ask(st_checkpoint_options_init(&options, sizeof options));
  options.keep_last = 0;  // an import removes no checkpoints
  st_checkpoint* made = nullptr;
  check_folder(st_checkpoint_create(context.get(), folder.c_str(), &options, &made));
  const Checkpoint checkpoint(made);
  std::vector<st_named_view> views;
  for (const StoredTensor& tensor : tensors) views.push_back({tensor.name.c_str(), tensor.view()});
  check_folder(st_checkpoint_save(checkpoint.get(), step, std::ssize(views), views.data(), metadata.dump().c_str(), nullptr));
}

/// The name of a file or folder without its path.
std::string name_of(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return std::filesystem::path(path).filename().string();
}

/// By the first bytes of its manifest, the same in every version: other programs have a manifest.json, too.
bool is_checkpoint(const std::filesystem::path& folder) {
  constexpr std::string_view kBegin = R"({"format":"scaletrain-checkpoint",)";
  std::string begin(kBegin.size(), '\0');
  return std::ifstream(folder / "manifest.json", std::ios::binary).read(begin.data(), std::ssize(begin)) && begin == kBegin;
}

}  // namespace

void export_checkpoint(const CheckpointRequest& o) {
  const bool is_torch = o.format == "torch";
  if (!is_torch && !o.format.empty() && o.format != "safetensors")
    refuse("--format is \"", o.format, "\"; it must be safetensors or torch");
  if (is_torch && o.everything) refuse("--everything is an option of --format safetensors; torch always includes the optimizer's state");
  const NameMap names(maps_llama(o) ? "" : o.map);
  if (maps_llama(o) && is_torch) refuse("--map llama has no --format torch, since it covers only weights; leave --format out");
  if (!o.map.empty() && o.everything)
    refuse("--everything and --map exclude each other, since --map covers only weights",
           maps_llama(o) ? "" : "; --format torch supports both");
  const CheckpointFolder folder(o.first);
  if (is_checkpoint(std::filesystem::path(o.second).parent_path()))
    refuse("checkpoint export: ", o.second, " is inside a checkpoint and could replace one of its files; name a file outside");
  if (is_torch)
    export_torch(folder, o, names);
  else if (maps_llama(o))
    export_as_llama(folder, o);
  else if (names.is_any())
    export_renamed(folder, o, names);
  else
    folder.newest([&](const char* name) { return st_checkpoint_export(folder.handle(), name, o.second.c_str(), o.everything ? 1 : 0); });
  std::error_code unknown;
  std::printf("%s: %s bytes\n", o.second.c_str(), with_commas(static_cast<int64_t>(std::filesystem::file_size(o.second, unknown))).c_str());
}

void import_checkpoint(const CheckpointRequest& o) {
  const bool has_llama = maps_llama(o);
  TorchImport read = read_weights(o.first, NameMap(has_llama ? "" : o.map), has_llama);
  const std::string rest = list_of(read.not_taken);
  if (read.tensors.empty())
    refuse("checkpoint import: ", o.first, rest.empty() ? " holds no tensors" : " holds no tensors that can be read, only " + rest);
  if (has_llama) import_llama(o.first, read.tensors, read.made);
  const int64_t step = o.step.empty() ? read.step : whole_number("--step", o.step);
  if (step < 0) refuse("--step is ", step, "; give 0 or more");
  if (read.has_state && read.step == 0 && o.step.empty())
    refuse("checkpoint import: ", o.first,
           " has an optimizer's state and does not say after how many updates (torch.optim.SGD's never does); give --step");
  if (read.step > 0 && step != read.step) refuse("--step is ", step, ", but the optimizer's state of ", o.first, " is of step ", read.step);
  if (const std::string nan = nan_in(read.tensors); !nan.empty())
    refuse("checkpoint import: ", o.first, ": ", nan, ", so training cannot continue from it; import a file without NaN");
  Json metadata = read.metadata;
  metadata["imported_from"] = name_of(o.first);
  if (const std::string config = o.map.empty() ? "" : config_next_to(o.first); !config.empty()) {
    const Json model = read_config(config, has_llama ? "llama-hf" : "gpt2");
    check_config(model, config);
    metadata[kModelOfRun] = model.dump();
  }
  save(o.second, step, read.tensors, metadata);
  if (!read.stripped.empty()) std::printf("names: without %s\n", read.stripped.c_str());
  if (!rest.empty()) std::printf("not taken: %s\n", rest.c_str());
  std::printf("%s: %zu tensors, step %lld\n", o.second.c_str(), read.tensors.size(), static_cast<long long>(step));
}

}  // namespace cli
