#include "checkpoint/save_destination.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/os/files.h"
#include "base/text.h"

namespace st {
namespace {

/// The checkpoints that retention starts with. A folder without a manifest is left alone: it may be a copy in progress.
std::vector<RetainedCheckpoint> known_of(const RunFolder& folder, const std::string& best) {
  std::vector<RetainedCheckpoint> known;
  for (const CheckpointEntry& entry : folder.list()) {
    const bool good = entry.problem.empty();
    if (!good && os::kind_of(text(folder.path_to(entry.name), "/", kManifestName)) == os::PathKind::none) continue;
    known.push_back(good ? retained(entry.name, folder.manifest_of(entry.name), best)
                         : RetainedCheckpoint{.name = entry.name, .step = entry.step, .metric = {}, .valid = false});
    known.back().earlier = true;
  }
  return known;
}

}  // namespace

SaveDestination::SaveDestination(std::string folder, Options options, Logger log, Place place)
    : folder_(folder), options_(std::move(options)), log_(log) {
  if (place == Place::of_folder) writer_.emplace(std::move(folder));
  if (writer_) known_ = known_of(folder_, options_.best);
}

std::unique_ptr<SharedSaveEnd> SaveDestination::join(const std::shared_ptr<const SharedSave>& shared) const {
  require(shared || writer_, Code::wrong_state, "checkpoint: another process saves into ", folder_.path(),
          "; this one opened it read_only and can only save together with the other ranks");
  if (!shared) return nullptr;
  require((shared->rank == 0) == writer_.has_value(), Code::wrong_state, "checkpoint: rank ", shared->rank, " opened ", folder_.path(),
          writer_ ? " for saving" : " read_only", "; when ranks save together, rank 0 opens it for saving and the others read_only");
  return std::make_unique<SharedSaveEnd>(shared, folder_.path(), log_);
}

std::string SaveDestination::write(Manifest& manifest, const std::vector<WrittenTensor>& tensors, SharedSaveEnd* together,
                                   const std::function<bool()>& is_cancelled) {
  written_.is_cancelled = [this, together, is_cancelled] {
    if (together != nullptr) together->look_around(written_);
    return is_cancelled && is_cancelled();
  };
  if (writer_) return commit(manifest, tensors, together);
  together->write_part(manifest.step, tensors, options_.write, written_);
  return "";
}

std::string SaveDestination::commit(Manifest& manifest, const std::vector<WrittenTensor>& tensors, SharedSaveEnd* together) {
  written_.done = written_.all = 0;
  std::string name;
  try {
    name = writer_->begin(manifest.step);
    manifest.checkpoint = name;
    manifest.sequence = writer_->next_sequence();
    Manifest whole = together != nullptr
                         ? together->write_all(name, std::move(manifest), tensors, options_.write, written_)
                         : write_checkpoint(writer_->part_path(name), std::move(manifest), tensors, options_.write, written_);
    manifest = std::move(whole);
    writer_->commit(name);
    if (together != nullptr) together->end();
  } catch (...) {
    if (together != nullptr) together->report_failure();
    if (!name.empty()) writer_->discard(name);
    throw;
  }
  return name;
}

void SaveDestination::follow(const std::string& name, const Manifest& manifest) {
  log_.info("checkpoint", "saved ", name, ", ", text_of_bytes(manifest.bytes()));
  {
    const std::lock_guard lock(mutex_);
    known_.insert(known_.begin(), retained(name, manifest, options_.best));
  }
  warn_of_others();
  writer_->set_latest(name, manifest.sequence);
  remove_older();
}

/// Says once which checkpoints stay because they are of another run.
void SaveDestination::warn_of_others() {
  if (has_warned_of_others_) return;
  std::string names;
  {
    const std::lock_guard lock(mutex_);
    for (const RetainedCheckpoint& checkpoint : known_)
      if (!is_of_same_run(checkpoint, known_.front())) names += text(names.empty() ? "" : ", ", checkpoint.name);
  }
  has_warned_of_others_ = !names.empty();
  if (has_warned_of_others_)
    log_.warning("checkpoint", folder_.path(), " holds checkpoints of another run, which are kept: ", names,
                 "; give each run its own folder, or remove them");
}

void SaveDestination::remove_older() {
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    names = to_remove(options_.retention, known_);
  }
  for (const std::string& name : names) {
    if (!writer_->remove(name)) continue;  // a reader holds it: tried again after the next save
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [&](const RetainedCheckpoint& checkpoint) { return checkpoint.name == name; });
  }
  writer_->remove_leftovers();
}

void SaveDestination::adopt_earlier() {
  const std::lock_guard lock(mutex_);
  for (RetainedCheckpoint& checkpoint : known_) checkpoint.earlier = false;
}

void SaveDestination::mark_corrupt(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (RetainedCheckpoint& checkpoint : known_)
    if (checkpoint.name == name) checkpoint.valid = false;
}

}  // namespace st
