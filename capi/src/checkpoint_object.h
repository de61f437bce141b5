// A checkpoint folder, and the saves that a trainer makes by itself.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>
#include <string>
#include <utility>

#include "checkpoint/checkpoint_manager.h"
#include "load_report.h"
#include "object_handles.h"
#include "parts/context.h"

namespace st::capi {

struct CheckpointObject final : Object, Trimmable {
  explicit CheckpointObject(std::string path) : folder(std::move(path)) {}

  void trim() override { saves().trim(); }

  /// The manager that saves. Throws wrong_state if the handle is read_only, except for `together`: a read_only handle does write its part
  /// of what ranks save together. May be called from several threads at once.
  CheckpointManager& to_save(const char* call, bool together = false) const {
    if (together) return saves();
    require(manager != nullptr, Code::wrong_state, call, ": ", folder.path(), " was opened read_only; open it without read_only to save");
    return *manager;
  }
  CheckpointManager& saves() const { return manager ? *manager : *beside; }
  /// After a load: saves through this handle continue the run in the folder.
  void continue_run() const {
    if (manager) manager->adopt_earlier();
  }

  std::shared_ptr<Context> context;
  std::unique_ptr<Workers> workers;
  RunFolder folder;
  bool is_one = false;                         // the folder is a checkpoint itself
  WriteOptions writing;                        // for what is written outside the manager's saves
  LoadReport report;                           // of the last load
  std::unique_ptr<CheckpointManager> manager;  // null: read_only
  std::unique_ptr<CheckpointManager> beside;   // set if read_only: writes this rank's part of what ranks save together; this is not rank 0
};

/// The saves that a trainer makes by itself, and their outcome.
struct BackgroundSaves {
  std::shared_ptr<CheckpointObject> checkpoint;  // null: none
  bool is_collective = false;                    // with the other ranks of the trainer's group
  int64_t steps = 0;                             // 0: not by steps
  double minutes = 0, last = 0;                  // 0: not by time; start of the last save
  std::string error;                             // for the last step's report
};

ST_HANDLE(st_checkpoint, checkpoint, CheckpointObject)

}  // namespace st::capi
