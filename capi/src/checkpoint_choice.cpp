#include "checkpoint_choice.h"

#include <atomic>

#include "base/error.h"
#include "host_metadata.h"

namespace st::capi {
namespace {

std::string_view last_part(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

/// What the folder itself is, when it is a checkpoint: any name but its own is a slip.
const std::string& that_one(const CheckpointObject& object, const char* name) {
  const std::string& folder = object.folder.path();
  require(name == nullptr || last_part(folder) == name, Code::not_found, "checkpoint: ", folder, " is a checkpoint itself, and not \"",
          name == nullptr ? "" : name, "\"; open the run's folder, or pass NULL");
  return folder;
}

/// Of the checkpoint's own files, or met while it was opened: not a file of the host's, a name that is not in it, a lack of memory, or a
/// format that a newer library wrote.
bool is_damage(const Error& error, const std::string& folder, bool opened) {
  if (error.code() == Code::corrupt) return true;
  const bool of_its_files = !opened || error.place.file.starts_with(folder + "/");
  return of_its_files && (error.code() == Code::io || error.code() == Code::not_found);
}

void pass_over(CheckpointObject& object, const std::string& name, const std::string& why, std::vector<std::string>& skipped) {
  skipped.push_back(text(name, ": ", why));
  if (object.manager) object.manager->mark_corrupt(name);
}

}  // namespace

std::function<bool()> cancelled_from_now(const Context& context) {
  const std::atomic<uint64_t>& cancels = context.cancels();
  return [&cancels, before = cancels.load()] { return cancels != before; };
}

std::string folder_of(CheckpointObject& object, const char* name) {
  if (object.is_one) return that_one(object, name);
  return object.folder.path_of(name == nullptr ? "" : name);
}

void with_checkpoint(CheckpointObject& object, const char* name, std::vector<std::string>& skipped,
                     const std::function<void(const CheckpointReader&)>& use) {
  const std::function<bool()> is_cancelled = cancelled_from_now(*object.context);
  if (object.is_one || name != nullptr) return use(CheckpointReader(folder_of(object, name), is_cancelled));
  const std::string& folder = object.folder.path();
  for (const CheckpointEntry& entry : object.folder.list()) {
    std::optional<CheckpointReader> reader;
    try {
      reader.emplace(object.folder.path_of(entry.name), is_cancelled);
      return use(*reader);
    } catch (const Error& error) {
      if (!is_damage(error, text(folder, "/", entry.name), reader.has_value())) throw;
      pass_over(object, entry.name, error.message(), skipped);
    }
  }
  require(!skipped.empty(), Code::not_found, "checkpoint: ", folder, " holds none");
  std::string reasons;
  for (const std::string& reason : skipped) reasons += "\n  " + reason;
  fail(Code::corrupt, text("checkpoint: none of the ", skipped.size(), " in ", folder, " is whole:", reasons));
}

void load_from(CheckpointObject& object, const char* name, st_load_report* report,
               const std::function<void(const CheckpointReader&, LoadReport&)>& load) {
  LoadReport& made = object.report = LoadReport();
  try {
    with_checkpoint(object, name, made.skipped, [&](const CheckpointReader& reader) {
      const Manifest& manifest = reader.manifest();
      made.missing.clear();  // an older one is looked at when a newer one was not whole
      made.unexpected.clear();
      made.step = manifest.step;
      made.name = manifest.checkpoint;
      made.metadata = json_of(manifest.metadata);
      load(reader, made);
    });
  } catch (...) {
    made.give(report);
    throw;
  }
  made.give(report);
}

}  // namespace st::capi
