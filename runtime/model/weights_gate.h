// The lock of a model's parameters: one update, or any number of readers between two updates.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace st {

class WeightsGate {
 public:
  /// Waits until no reader is inside; from then on readers wait. Throws busy if another trainer's update is paused, because the thread that
  /// would end that update may be this one.
  void begin_update();
  /// Pauses an update that a later call (Trainer::advance) continues: readers then throw busy instead of waiting. resume_update() never
  /// waits.
  void pause_update();
  void resume_update();
  void end_update();

  /// Grows with every change of the parameters, by any caller. Constant while a Reader exists.
  int64_t changes() const { return changes_; }

  /// An update for its lifetime, or until it is paused.
  class Updating {
   public:
    Updating(WeightsGate& gate, bool resumed) : gate_(gate) { resumed ? gate.resume_update() : gate.begin_update(); }
    ~Updating() {
      if (!paused_) gate_.end_update();
    }
    Updating(const Updating&) = delete;
    Updating& operator=(const Updating&) = delete;
    void pause() {
      gate_.pause_update();
      paused_ = true;
    }

   private:
    WeightsGate& gate_;
    bool paused_ = false;
  };

  /// Sees the parameters of one whole step for its lifetime. Waits for an update in progress; throws busy for a paused one, and for one
  /// that this thread runs itself (a host's callback from within it).
  class Reader {
   public:
    explicit Reader(WeightsGate& gate);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    WeightsGate& gate_;
  };

  /// Like Reader, but throws busy for an update in progress too instead of waiting; for readers of shared weights.
  class TryReader {
   public:
    explicit TryReader(WeightsGate& gate);
    ~TryReader();
    TryReader(const TryReader&) = delete;
    TryReader& operator=(const TryReader&) = delete;

   private:
    WeightsGate& gate_;
  };

  /// Changes the parameters outside a step (set, read, blend): an update for its lifetime. Throws busy instead of waiting for another
  /// update, because a paused one ends only when the host continues it.
  class Writer {
   public:
    explicit Writer(WeightsGate& gate);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

   private:
    WeightsGate& gate_;
  };

 private:
  enum class Update { none, running, paused };

  void leave();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<Update> update_ = Update::none;  // changed under the mutex
  std::thread::id updater_;                    // thread of the running update
  int64_t readers_ = 0;
  std::atomic<int64_t> changes_ = 0;
};

}  // namespace st
