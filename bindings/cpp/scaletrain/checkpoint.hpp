// Checkpoints: a run's folder, saved into in the background. Loads use the newest valid checkpoint.
#pragma once

#include <scaletrain/checkpoint.h>

#include <chrono>
#include <scaletrain/context.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/pending.hpp>
#include <scaletrain/trainer.hpp>
#include <scaletrain/view.hpp>
#include <string>
#include <vector>

namespace scaletrain {

struct CheckpointOptions {
  bool read_only = false;  // also while a process saves there; ranks other than 0 save their shards through it (Trainer::save)
  int64_t keep_last = 3;   // 0: all; counts those that were in the folder only after a load or resume
  int64_t keep_every = 0;  // keep also each whose step is a multiple; 0: none
  int64_t keep_best = 0;   // keep also the best so many by `best`
  std::string best;        // a number in the metadata or training state
  bool best_is_higher = false;
  int32_t queue = 0;                // saves that may wait for the one being written
  double bytes_per_second = 0;      // write limit; 0: none
  int64_t file_bytes = 4294967296;  // 4 GiB, as a literal that SWIG can read
};

struct LoadReport {
  int64_t step = -1;
  std::string name;      // "step-00000120"
  std::string metadata;  // JSON
  int64_t read = 0;      // tensors
  std::vector<std::string> missing, unexpected;
  std::vector<std::string> skipped;  // newer checkpoints that are not valid, and why
  std::vector<std::string> changed;  // recipe keys that differ, with both values
};

struct SaveProgress {
  int64_t bytes_done = 0, bytes_all = 0;  // 0 of 0: no save is being written
  int64_t waiting = 0;                    // saves in the queue
  int64_t saved = 0, failed = 0;
  int64_t saved_step = -1;  // of the newest checkpoint on disk; -1: none
  double blocked_seconds = 0, write_seconds = 0;
};

/// The manager of one folder. The name "" means the newest valid checkpoint.
class Checkpoint : public detail::Handle<st_checkpoint, st_checkpoint_destroy> {
 public:
  Checkpoint(const Context& context, const std::string& folder, const CheckpointOptions& options = CheckpointOptions())
      : Handle(detail::Access::host(context)) {
    st_checkpoint_options raw;
    done(st_checkpoint_options_init(&raw, sizeof raw));
    raw.read_only = options.read_only ? 1 : 0;
    raw.keep_last = options.keep_last;
    raw.keep_every = options.keep_every;
    raw.keep_best = options.keep_best;
    raw.best = options.best.empty() ? nullptr : options.best.c_str();
    raw.best_is_higher = options.best_is_higher ? 1 : 0;
    raw.queue = options.queue;
    raw.bytes_per_second = options.bytes_per_second;
    raw.file_bytes = options.file_bytes;
    done(st_checkpoint_create(context.get(), folder.c_str(), &raw, out()));
  }

  /// Saves the program's own buffers. metadata: a JSON object, or "". Returns when everything is on disk.
  void save(int64_t step, const Views& views, const std::string& metadata = "") const {
    done(st_checkpoint_save(get(), step, views.size(), views.raw(), given(metadata), nullptr));
  }
  /// Returns when the buffers are copied; the files are written in the background.
  Pending save_async(int64_t step, const Views& views, const std::string& metadata = "") const {
    Pending pending(host());
    done(st_checkpoint_save(get(), step, views.size(), views.raw(), given(metadata), pending.out()));
    return pending;
  }
  /// Loads into views of the tensors' dims; floating dtypes are converted. If it throws, no view has changed, except with
  /// options.overwrite.
  LoadReport load(const Views& views, const std::string& name = "", const ReadOptions& options = ReadOptions()) const {
    LoadReport report;
    load(views, name, options, report);
    return report;
  }
  /// Fills `report` also when it throws because names did not match.
  void load(const Views& views, const std::string& name, const ReadOptions& options, LoadReport& report) const {
    for (const NamedView& named : views) detail::writable("Checkpoint::load: view", named.view, named.name);
    loaded(options, report, [&](const st_read_options* raw, st_load_report* found) {
      return st_checkpoint_load(get(), given(name), views.size(), views.raw(), raw, found);
    });
  }

  // JSON as described in the C header.
  std::string list() const { return text(st_checkpoint_list); }
  std::string inspect(const std::string& name = "") const { return text_of(st_checkpoint_inspect, name); }
  std::string verify(const std::string& name = "") const { return text_of(st_checkpoint_verify, name); }
  /// 32 hex digits; for a trainer's checkpoint its digest().
  std::string hash(const std::string& name = "") const { return text_of(st_checkpoint_hash, name); }
  /// Writes the same checkpoint as `shards` files of each kind (0: as whole tensors) into a folder that is absent or empty.
  void reshard(const std::string& folder, int32_t shards, const std::string& name = "") const {
    done(st_checkpoint_reshard(get(), given(name), folder.c_str(), shards));
  }
  /// Writes the weights, with `everything` also the optimizer state, as one safetensors file.
  void export_to(const std::string& path, bool everything = false, const std::string& name = "") const {
    done(st_checkpoint_export(get(), given(name), path.c_str(), everything ? 1 : 0));
  }

  /// Waits until no save is running. Throws the error of a save that was not reported yet, once. From any thread, as progress().
  void wait() const { done(st_checkpoint_wait(get(), -1)); }
  /// Waits at most so long; false: a save is still running.
  bool wait(std::chrono::milliseconds most) const {
    const st_status status = st_checkpoint_wait(get(), most.count() < 0 ? 0 : most.count());
    if (status == ST_TIMEOUT) return false;
    done(status);
    return true;
  }
  SaveProgress progress() const {
    st_save_progress raw;
    done(st_save_progress_init(&raw, sizeof raw));
    done(st_checkpoint_progress(get(), &raw));
    SaveProgress now;
    now.bytes_done = raw.bytes_done;
    now.bytes_all = raw.bytes_all;
    now.waiting = raw.waiting;
    now.saved = raw.saved;
    now.failed = raw.failed;
    now.saved_step = raw.saved_step;
    now.blocked_seconds = raw.blocked_seconds;
    now.write_seconds = raw.write_seconds;
    return now;
  }

 private:
  friend class Model;
  friend class Trainer;

  static const char* given(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  template <class Call>
  std::string text_of(Call call, const std::string& name) const {
    return text([&](st_checkpoint* checkpoint, const char** answer) { return call(checkpoint, given(name), answer); });
  }
  /// Common to all loads: makes call(options, report) and returns the report.
  template <class Call>
  void loaded(const ReadOptions& options, LoadReport& report, const Call& call) const {
    const detail::RawReadOptions raw(options);
    st_load_report found;
    done(st_load_report_init(&found, sizeof found));
    const st_status status = reading([&] {
      const st_status ended = call(raw.get(), &found);
      report = copied(found);
      return ended;
    });
    done(status);
  }
  static LoadReport copied(const st_load_report& raw) {
    const auto texts = [](const char* const* begin, int64_t count) { return std::vector<std::string>(begin, begin + count); };
    LoadReport made;
    made.step = raw.step;
    if (raw.name != nullptr) made.name = raw.name;
    if (raw.metadata != nullptr) made.metadata = raw.metadata;
    made.read = raw.read;
    made.missing = texts(raw.missing, raw.missing_count);
    made.unexpected = texts(raw.unexpected, raw.unexpected_count);
    made.skipped = texts(raw.skipped, raw.skipped_count);
    made.changed = texts(raw.changed, raw.changed_count);
    return made;
  }
};

inline void Model::load(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options, LoadReport& report) const {
  checkpoint.loaded(options, report, [&](const st_read_options* raw, st_load_report* found) {
    return st_model_load(get(), checkpoint.get(), Checkpoint::given(name), raw, found);
  });
}
inline LoadReport Model::load(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options) const {
  LoadReport report;
  load(checkpoint, name, options, report);
  return report;
}

inline void Trainer::save(const Checkpoint& checkpoint, const std::string& metadata) const {
  done(st_trainer_save(get(), checkpoint.get(), Checkpoint::given(metadata), nullptr));
}
inline void Trainer::save_collective(const Checkpoint& checkpoint, const std::string& metadata) const {
  done(st_trainer_save_collective(get(), checkpoint.get(), Checkpoint::given(metadata), nullptr));
}
inline Pending Trainer::save_async_collective(const Checkpoint& checkpoint, const std::string& metadata) const {
  Pending pending(host());
  done(st_trainer_save_collective(get(), checkpoint.get(), Checkpoint::given(metadata), pending.out()));
  return pending;
}
inline Pending Trainer::save_async(const Checkpoint& checkpoint, const std::string& metadata) const {
  Pending pending(host());
  done(st_trainer_save(get(), checkpoint.get(), Checkpoint::given(metadata), pending.out()));
  return pending;
}
inline void Trainer::save_every(const Checkpoint& checkpoint, int64_t steps, double minutes) const {
  done(st_trainer_save_every(get(), checkpoint.get(), steps, minutes));
}
inline void Trainer::save_no_more() const { done(st_trainer_save_every(get(), nullptr, 0, 0)); }
inline void Trainer::save_every_collective(const Checkpoint& checkpoint, int64_t steps, double minutes) const {
  done(st_trainer_save_every_collective(get(), checkpoint.get(), steps, minutes));
}
inline void Trainer::save_no_more_collective() const { done(st_trainer_save_every_collective(get(), nullptr, 0, 0)); }
inline void Trainer::resume(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options, LoadReport& report) const {
  checkpoint.loaded(options, report, [&](const st_read_options* raw, st_load_report* found) {
    return st_trainer_resume(get(), checkpoint.get(), Checkpoint::given(name), raw, found);
  });
}
inline LoadReport Trainer::resume(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options) const {
  LoadReport report;
  resume(checkpoint, name, options, report);
  return report;
}

}  // namespace scaletrain
