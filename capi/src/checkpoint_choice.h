// Selects the checkpoint of a call: the one that it names, or the newest whole one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint_object.h"
#include "train/resume.h"

namespace st::capi {

/// Returns a function that says whether st_context_cancel was called after this moment.
std::function<bool()> cancelled_from_now(const Context& context);

/// Calls use(reader) on the checkpoint `name`, or on the newest whole one if name is NULL.
/// - With NULL, a checkpoint that cannot be opened, or that `use` finds damaged, is skipped: its reason goes into `skipped`, and retention
///   no longer counts it.
/// - Throws not_found if there is no checkpoint (of that name), and corrupt with the reasons if none is whole. Rethrows other errors of
///   `use`.
/// - The reader observes st_context_cancel.
void with_checkpoint(CheckpointObject& object, const char* name, std::vector<std::string>& skipped,
                     const std::function<void(const CheckpointReader&)>& use);

/// The same for a load. Its report is cleared first, kept by the object, and given to the host (unless NULL), also if the load fails: then
/// with what it had found so far.
void load_from(CheckpointObject& object, const char* name, st_load_report* report,
               const std::function<void(const CheckpointReader&, LoadReport&)>& load);

/// The same for a collective load by all ranks of a group (trainer.h, is_sharded). If name is NULL, rank 0 chooses the newest; a
/// checkpoint that is not whole for one rank is skipped by all. `load` opens it; its errors are the same on all ranks.
void load_together(CheckpointObject& object, Communicator& ranks, const char* name, st_load_report* report,
                   const std::function<void(const OpenCheckpoint&, LoadReport&)>& load);

/// The checkpoint's name as ranks that load together compare it; a fixed text for the newest.
std::string requested_name(const CheckpointObject& object, const char* name);

/// The folder of the checkpoint `name`; if NULL, of the newest that has a manifest.
std::string folder_of(CheckpointObject& object, const char* name);

}  // namespace st::capi
