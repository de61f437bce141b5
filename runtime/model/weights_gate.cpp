#include "model/weights_gate.h"

#include "base/error.h"

namespace st {

void WeightsGate::begin_update() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return update_ != Update::running; });  // another trainer of the same model may be at it
  require(update_ == Update::none, Code::busy,
          "model: another trainer's st_trainer_advance has not finished its update; call it until its step is done");
  update_ = Update::running;  // before the readers are gone, or new ones could starve it
  updater_ = std::this_thread::get_id();
  changed_.wait(lock, [&] { return readers_ == 0; });
}

void WeightsGate::pause_update() {
  const std::lock_guard lock(mutex_);
  update_ = Update::paused;
  changed_.notify_all();
}

void WeightsGate::resume_update() {
  const std::lock_guard lock(mutex_);
  update_ = Update::running;
  updater_ = std::this_thread::get_id();
}

void WeightsGate::end_update() {
  const std::lock_guard lock(mutex_);
  update_ = Update::none;
  ++changes_;
  changed_.notify_all();
}

void WeightsGate::leave() {
  const std::lock_guard lock(mutex_);
  if (--readers_ == 0) changed_.notify_all();
}

WeightsGate::Reader::Reader(WeightsGate& gate) : gate_(gate) {
  std::unique_lock lock(gate.mutex_);
  require(gate.update_ != Update::running || gate.updater_ != std::this_thread::get_id(), Code::busy,
          "model: this thread is running a step's update; read the weights after it");
  gate.changed_.wait(lock, [&] { return gate.update_ != Update::running; });
  require(gate.update_ == Update::none, Code::busy,
          "model: st_trainer_advance has not finished its update; call it until the step is done, then read the weights");
  ++gate.readers_;
}

WeightsGate::Reader::~Reader() { gate_.leave(); }

WeightsGate::TryReader::TryReader(WeightsGate& gate) : gate_(gate) {
  const auto require_no_update = [&] {
    require(gate.update_ == Update::none, Code::busy,
            "model: a step is writing the weights; try again, or use a predictor with its own snapshot");
  };
  require_no_update();  // without the mutex: threads that ask again and again would keep it from the update that waits for it
  const std::lock_guard lock(gate.mutex_);
  require_no_update();
  ++gate.readers_;
}

WeightsGate::TryReader::~TryReader() { gate_.leave(); }

WeightsGate::Writer::Writer(WeightsGate& gate) : gate_(gate) {
  std::unique_lock lock(gate.mutex_);
  require(gate.update_ == Update::none, Code::busy, "model: a step's update is not finished; write the weights after it");
  gate.update_ = Update::running;
  gate.updater_ = std::this_thread::get_id();
  gate.changed_.wait(lock, [&] { return gate.readers_ == 0; });
}

WeightsGate::Writer::~Writer() { gate_.end_update(); }

}  // namespace st
