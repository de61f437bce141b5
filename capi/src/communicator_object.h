// A rank of a group.
#pragma once

#include <scaletrain/scaletrain.h>

#include <atomic>
#include <memory>

#include "base/work_queue.h"
#include "comm/communicator.h"
#include "object_handles.h"
#include "parts/context.h"
#include "train/trainer.h"

namespace st::capi {

struct CommunicatorObject final : Object {
  std::shared_ptr<Context> context;
  std::atomic<uint64_t> cancels{0};               // the context's count when the current call began
  std::atomic<const Trainer*> at_step = nullptr;  // the trainer of a rank whose step is running: its cancels also end waits
  std::shared_ptr<const void> memory;             // in the context's account: what ranks hold for each other
  std::unique_ptr<Communicator> ranks;
  WorkQueue queue;  // pending work; ends first
};

ST_HANDLE(st_communicator, communicator, CommunicatorObject)

}  // namespace st::capi
